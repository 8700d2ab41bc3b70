import { Context, Effect, MetricState, Option } from "effect"
import * as Metrics from "../../services/metrics/Metrics.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"

interface Family {
  readonly name: string
  readonly help: string
  readonly kind: "counter" | "gauge" | "histogram"
  /** Values are decimal texts, because some exceed the integers that a number represents exactly. */
  readonly samples: Readonly<Record<string, string>>
}
export type Families = ReadonlyArray<Family>

const escape = (text: string) => text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')

type Labels = ReadonlyArray<readonly [name: string, value: string]>

const seriesOf = (name: string, labels: Labels): string =>
  labels.length === 0 ? name : `${name}{${labels.map(([label, value]) => `${label}="${escape(value)}"`).join(",")}}`

type Pair = ReturnType<typeof Metrics.unsafeSnapshot>[number]
type Sample = readonly [suffix: string, labels: Labels, value: number | bigint]

const read = ({ metricState: state }: Pair): readonly [Family["kind"], ReadonlyArray<Sample>] => {
  if (MetricState.isCounterState(state)) return ["counter", [["", [], state.count]]]
  if (!MetricState.isHistogramState(state))
    return ["gauge", MetricState.isGaugeState(state) ? [["", [], state.value]] : []]
  const buckets = Array.from(
    state.buckets,
    ([bound, count]): Sample => ["_bucket", [["le", bound < Number.MAX_VALUE ? String(bound) : "+Inf"]], count]
  )
  return ["histogram", [...buckets, ["_sum", [], state.sum], ["_count", [], state.count]]]
}

/** Series names are cached, because building them is most of the work and they never change. */
const cachedNames = new WeakMap<Pair["metricKey"], Array<string>>()

const namesOf = ({ metricKey }: Pair, samples: ReadonlyArray<Sample>): ReadonlyArray<string> => {
  const names = cachedNames.get(metricKey)
  if (names?.length === samples.length) return names
  const tags = Array.from(metricKey.tags, ({ key, value }) => [key, value] as const)
  const series = samples.map(([suffix, labels]) => seriesOf(metricKey.name + suffix, [...tags, ...labels]))
  cachedNames.set(metricKey, series)
  return series
}

const collectSteps = function* (): Steps<Families> {
  const families = new Map<string, Family & { readonly samples: Record<string, string> }>()
  for (const pair of Metrics.unsafeSnapshot()) {
    const { description, name } = pair.metricKey
    // The Effect runtime's own metrics are skipped, because it stops updating them after the start.
    if (name.startsWith("effect_")) continue
    const [kind, samples] = read(pair)
    const help = Option.getOrElse(description, () => "")
    const family = families.get(name) ?? { name, help, kind, samples: {} }
    families.set(name, family)
    const names = namesOf(pair, samples)
    for (const [at, [, , value]] of samples.entries()) family.samples[names[at] ?? ""] = String(value)
    yield
  }
  return [...families.values()]
}

export const snapshot: Effect.Effect<Families> = Effect.suspend(() => EventLoop.runInSlices(collectSteps()))

export const gauge = (name: string, help: string, values: ReadonlyArray<readonly [Labels, number]>): Family => ({
  name,
  help,
  kind: "gauge",
  samples: Object.fromEntries(values.map(([labels, value]) => [seriesOf(name, labels), String(value)]))
})

const integerText = /^-?\d+$/

const combineValues = (name: string, left: string, right: string): string => {
  const merge = Metrics.merges[name]
  if (merge !== undefined) return String(merge(Number(left), Number(right)))
  const areExact = integerText.test(left) && integerText.test(right)
  return areExact ? String(BigInt(left) + BigInt(right)) : String(Number(left) + Number(right))
}

export const sum = (processes: ReadonlyArray<Families>): Families => {
  const families = new Map<string, Family>()
  for (const family of processes.flat()) {
    const samples = { ...families.get(family.name)?.samples }
    for (const [series, value] of Object.entries(family.samples)) {
      const previousValue = samples[series]
      samples[series] = previousValue === undefined ? value : combineValues(family.name, previousValue, value)
    }
    families.set(family.name, { ...family, samples })
  }
  return [...families.values()]
}

export const withoutGauges = (families: Families): Families => families.filter((family) => family.kind !== "gauge")

const exposeSteps = function* (families: Families): Steps<string> {
  let text = ""
  for (const { help, kind, name, samples } of families) {
    text += `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`
    for (const series in samples) {
      text += `${series} ${samples[series]}\n`
      yield
    }
  }
  return text
}

export const exposition = (families: Families): Effect.Effect<string> =>
  Effect.suspend(() => EventLoop.runInSlices(exposeSteps(families)))

export class MetricsSource extends Context.Reference<MetricsSource>()("gateway/http/MetricsSource", {
  defaultValue: (): { readonly families: Effect.Effect<Families> } => ({ families: snapshot })
}) {}
