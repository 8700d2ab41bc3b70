import { Context, Effect, Metric, MetricKeyType, MetricState, Option, Schema } from "effect"

/** Values are decimal text, since some exceed exact numbers. */
export const Family = Schema.Struct({
  name: Schema.String,
  help: Schema.NullOr(Schema.String),
  kind: Schema.Literal("counter", "gauge", "histogram"),
  samples: Schema.Record({ key: Schema.String, value: Schema.String })
})
export type Family = typeof Family.Type
export type Families = ReadonlyArray<Family>

const escape = (text: string) => text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')

const labels = (tags: Iterable<{ readonly key: string; readonly value: string }>, more: ReadonlyArray<string> = []) => {
  const all = [...Array.from(tags, ({ key, value }) => `${key}="${escape(value)}"`), ...more]
  return all.length === 0 ? "" : `{${all.join(",")}}`
}

type Pair = ReturnType<typeof Metric.unsafeSnapshot>[number]
type Sample = readonly [series: string, value: number | bigint]

const samples = ({ metricKey, metricState }: Pair): ReadonlyArray<Sample> => {
  const { name, tags } = metricKey
  if (MetricState.isCounterState(metricState)) return [[`${name}${labels(tags)}`, metricState.count]]
  if (MetricState.isGaugeState(metricState)) return [[`${name}${labels(tags)}`, metricState.value]]
  if (MetricState.isFrequencyState(metricState)) {
    return Array.from(
      metricState.occurrences,
      ([value, count]): Sample => [`${name}${labels(tags, [`value="${escape(value)}"`])}`, count]
    )
  }
  if (MetricState.isHistogramState(metricState)) {
    const buckets = Array.from(
      metricState.buckets,
      ([bound, count]): Sample => [
        `${name}_bucket${labels(tags, [`le="${bound < Number.MAX_VALUE ? bound : "+Inf"}"`])}`,
        count
      ]
    )
    return [
      ...buckets,
      [`${name}_sum${labels(tags)}`, metricState.sum],
      [`${name}_count${labels(tags)}`, metricState.count]
    ]
  }
  return []
}

const kind = ({ metricKey: { keyType }, metricState }: Pair): Family["kind"] => {
  if (MetricState.isHistogramState(metricState)) return "histogram"
  return MetricKeyType.isCounterKey(keyType) && keyType.incremental ? "counter" : "gauge"
}

export const snapshot = (): Families => {
  const families = new Map<string, Family>()
  for (const pair of Metric.unsafeSnapshot()) {
    const { description, name } = pair.metricKey
    const family = families.get(name)
    families.set(name, {
      name,
      help: family?.help ?? Option.getOrNull(description),
      kind: family?.kind ?? kind(pair),
      samples: {
        ...family?.samples,
        ...Object.fromEntries(samples(pair).map(([series, value]) => [series, String(value)]))
      }
    })
  }
  return [...families.values()]
}

const integer = /^-?\d+$/

const add = (left: string, right: string) =>
  integer.test(left) && integer.test(right)
    ? String(BigInt(left) + BigInt(right))
    : String(Number(left) + Number(right))

export const sum = (processes: ReadonlyArray<Families>): Families => {
  const families = new Map<string, Family>()
  for (const family of processes.flat()) {
    const known = families.get(family.name)
    const both = { ...known?.samples }
    for (const [series, value] of Object.entries(family.samples)) both[series] = add(both[series] ?? "0", value)
    families.set(family.name, { ...family, samples: both })
  }
  return [...families.values()]
}

export const withoutGauges = (families: Families): Families => families.filter((family) => family.kind !== "gauge")

export const exposition = (families: Families): string => {
  const lines = families.flatMap((family) => [
    ...(family.help === null ? [] : [`# HELP ${family.name} ${family.help.replace(/\n/g, " ")}`]),
    `# TYPE ${family.name} ${family.kind}`,
    ...Object.entries(family.samples).map(([series, value]) => `${series} ${value}`)
  ])
  return `${lines.join("\n")}\n`
}

export class MetricsSource extends Context.Reference<MetricsSource>()("gateway/http/MetricsSource", {
  defaultValue: (): { readonly families: Effect.Effect<Families> } => ({ families: Effect.sync(snapshot) })
}) {}
