import { Metric, MetricState, Option } from "effect"

const escape = (text: string) => text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/"/g, '\\"')

const labels = (tags: Iterable<{ readonly key: string; readonly value: string }>, more: ReadonlyArray<string> = []) => {
  const all = [...Array.from(tags, ({ key, value }) => `${key}="${escape(value)}"`), ...more]
  return all.length === 0 ? "" : `{${all.join(",")}}`
}

type Pairs = ReadonlyArray<ReturnType<typeof Metric.unsafeSnapshot>[number]>

const samples = ({ metricKey, metricState }: Pairs[number]): ReadonlyArray<string> => {
  const { name, tags } = metricKey
  if (MetricState.isCounterState(metricState)) return [`${name}${labels(tags)} ${metricState.count}`]
  if (MetricState.isGaugeState(metricState)) return [`${name}${labels(tags)} ${metricState.value}`]
  if (MetricState.isFrequencyState(metricState)) {
    return Array.from(
      metricState.occurrences,
      ([value, count]) => `${name}${labels(tags, [`value="${escape(value)}"`])} ${count}`
    )
  }
  if (MetricState.isHistogramState(metricState)) {
    const buckets = Array.from(
      metricState.buckets,
      ([bound, count]) =>
        `${name}_bucket${labels(tags, [`le="${bound < Number.MAX_VALUE ? bound : "+Inf"}"`])} ${count}`
    )
    return [
      ...buckets,
      `${name}_sum${labels(tags)} ${metricState.sum}`,
      `${name}_count${labels(tags)} ${metricState.count}`
    ]
  }
  return []
}

const kind = ({ metricState }: Pairs[number]) =>
  MetricState.isCounterState(metricState)
    ? "counter"
    : MetricState.isHistogramState(metricState)
      ? "histogram"
      : "gauge"

/** Every registered metric in the Prometheus text format, version 0.0.4. */
export const exposition = (): string => {
  const families = new Map<string, Array<Pairs[number]>>()
  for (const pair of Metric.unsafeSnapshot()) {
    const family = families.get(pair.metricKey.name)
    if (family === undefined) families.set(pair.metricKey.name, [pair])
    else family.push(pair)
  }
  const lines = Array.from(families, ([name, pairs]) => {
    const [first] = pairs
    if (first === undefined) return []
    const help = Option.map(first.metricKey.description, (text) => `# HELP ${name} ${text.replace(/\n/g, " ")}`)
    return [...Option.toArray(help), `# TYPE ${name} ${kind(first)}`, ...pairs.flatMap(samples)]
  })
  return `${lines.flat().join("\n")}\n`
}
