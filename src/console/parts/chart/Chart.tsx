import { useEffect, useRef, useState } from "preact/hooks"
import UPlot from "uplot"
import { useTheme } from "../../BrowserState.ts"
import { formatLocal, formatUtc } from "../../format/Dates.ts"
import { type Column, Table } from "../Table.tsx"

interface Series {
  readonly label: string
  readonly kind: "bar" | "line"
  /** A colour of the style sheet. The numbered ones are for categories. */
  readonly tone: "accent" | "soft" | "warn" | "bad" | "c1" | "c2" | "c3" | "c4" | "c5"
  /** One for each time. */
  readonly values: ReadonlyArray<number | null>
}

interface Plot {
  readonly title: string
  /** Starts of UTC days, or of hours, shown in local time. */
  readonly times: ReadonlyArray<number>
  readonly step: "day" | "hour"
  readonly series: ReadonlyArray<Series>
  /** Formats a value without rounding. */
  readonly format: (value: number) => string
  /** Formats a value of the axis. */
  readonly formatTick: (value: number) => string
  /** Whether values are counts, so the axis has no fractions. */
  readonly isWhole?: boolean
  /** Whether bars are stacked instead of drawn in front of each other. */
  readonly isStacked?: boolean
}

const seconds = { day: 86_400, hour: 3600 } as const
const { day, hour } = seconds
const increments = [hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day]
/** uPlot's rows: the minimum increment, its label, and the text to append at the start of a year or day. */
const timeLabels = [
  [365 * day, "{YYYY}", null, null, null, null, null, null, 1],
  [30 * day, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [day, "{D} {MMM}", null, null, null, null, null, null, 1],
  [0, "{HH}:{mm}", null, null, "\n{D} {MMM}", null, null, null, 1]
]
const wholeIncrements = Array.from({ length: 13 }, (_, exponent) =>
  [1, 2, 5].map((digit) => digit * 10 ** exponent)
).flat()
const bars = UPlot.paths.bars?.({ size: [0.8, 40] })

/** Resolves a CSS variable for the canvas, in the current theme. */
const colourOf =
  (name: string) =>
  ({ root }: UPlot): string => {
    root.style.outlineColor = `var(--${name})`
    return getComputedStyle(root).outlineColor
  }

/** Later series cover earlier ones, so a stack is drawn in reverse. */
const inDrawingOrder = ({ isStacked = false, series }: Plot): ReadonlyArray<Series> =>
  isStacked ? series.toReversed() : series

/** In a stack each value includes the values below it. */
const dataOf = (plot: Plot): [Array<number>, ...Array<Array<number | null>>] => [
  [...plot.times],
  ...inDrawingOrder(plot).map(({ values }, at, ordered) =>
    values.map((value, index) => {
      const below = plot.isStacked ? ordered.slice(at + 1) : []
      const top = below.reduce((sum, { values }) => sum + (values[index] ?? 0), value ?? 0)
      return value === null || top <= 0 ? null : top
    })
  )
]

/** Places the tooltip beside the pointer, within the plot. */
const placeTip = ({ cursor: { left = 0 }, over }: UPlot) => {
  const tip = over.querySelector("table")
  if (tip === null) return
  const [width, room] = [tip.offsetWidth, over.clientWidth]
  const position = left > room / 2 ? left - width - 16 : left + 16
  tip.style.left = `${Math.max(0, Math.min(position, room - width))}px`
}

/** Returns options that read their values from the latest plot, so only other series need new options. */
const optionsOf = (latest: () => Plot): Omit<UPlot.Options, "width" | "height"> => {
  const { isWhole = false, step } = latest()
  const half = seconds[step] / 2
  const axis: UPlot.Axis = { font: "11px system-ui, sans-serif", stroke: colourOf("soft"), ticks: { show: false } }
  const timeOf = (at: number) => (step === "day" ? `${formatUtc(at).slice(0, 10)} UTC` : formatLocal(at).slice(0, -3))
  return {
    padding: [8, 16, 0, 0],
    tzDate: (at) => (step === "day" ? UPlot.tzDate(new Date(at * 1000), "UTC") : new Date(at * 1000)),
    scales: {
      x: { range: (_, first, last) => [first - half, last + half] },
      y: { range: (_, __, max) => UPlot.rangeNum(0, max || 1, 0.1, true) }
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        incrs: increments.filter((increment) => increment >= seconds[step]),
        size: 36,
        values: timeLabels
      },
      {
        ...axis,
        grid: { stroke: colourOf("line"), width: 1 },
        ...(isWhole && { incrs: wholeIncrements }),
        size: (_, texts: ReadonlyArray<string> | null) => 14 + 6.5 * Math.max(3, ...(texts ?? []).map((t) => t.length)),
        values: (_, ticks) => ticks.map(latest().formatTick)
      }
    ],
    cursor: { y: false, points: { show: false }, drag: { x: false } },
    legend: {
      mount: (self, tip) => self.over.append(tip),
      markers: { width: 0, fill: (_, at) => `var(--${inDrawingOrder(latest())[at - 1]?.tone})` }
    },
    hooks: { setCursor: [placeTip] },
    series: [
      { label: step === "day" ? "Day" : "Hour", value: (_, at) => timeOf(at) },
      ...inDrawingOrder(latest()).map(({ kind, label, tone }, at) => ({
        label,
        stroke: colourOf(tone),
        value: (_: UPlot, __: unknown, ___: unknown, index: number | null) =>
          index === null ? "" : latest().format(inDrawingOrder(latest())[at]?.values[index] ?? 0),
        points: { show: false },
        ...(kind === "bar" && bars && { fill: colourOf(tone), paths: bars })
      }))
    ]
  }
}

const height = 190

const Drawing = (plot: Plot) => {
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef(plot)
  latest.current = plot
  const drawing = useRef<UPlot>(undefined)
  useEffect(() => {
    const target = element.current
    if (target === null) return
    const size = () => ({ width: target.clientWidth, height })
    const chart = new UPlot({ ...optionsOf(() => latest.current), ...size() }, undefined, target)
    drawing.current = chart
    const observer = new ResizeObserver(() => chart.setSize(size()))
    observer.observe(target)
    const redraw = () => chart.redraw()
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", redraw)
    return () => {
      scheme.removeEventListener("change", redraw)
      observer.disconnect()
      chart.destroy()
    }
  }, [])
  useTheme()
  const data = dataOf(plot)
  useEffect(() => drawing.current?.setData(data))
  const max = Math.max(0, ...data.slice(1).flatMap((values) => values.map(Number)))
  return <div ref={element} role="img" aria-label={`${plot.title}: maximum ${plot.format(Number(max.toFixed(9)))}`} />
}

interface Row {
  readonly at: number
  readonly index: number
}

/** Bars and lines over equal time steps, and the same values as a table. */
export const Chart = (plot: Plot) => {
  const { format, series, step, times, title } = plot
  const [isOpen, setOpen] = useState(false)
  const rows = isOpen ? times.map((at, index): Row => ({ at, index })).toReversed() : []
  const from: Column<Row> =
    step === "day"
      ? { title: "Day (UTC)", kind: "text", value: ({ at }) => formatUtc(at).slice(0, 10) }
      : { title: "From", kind: "time", value: ({ at }) => at }
  return (
    <figure class="chart panel">
      <figcaption>
        <h2>{title}</h2>
        {series.length > 1 &&
          series.map(({ label, tone }) => (
            <span key={label}>
              <i style={{ background: `var(--${tone})` }} /> {label}
            </span>
          ))}
      </figcaption>
      <div class="drawing">
        {times.length > 0 && (
          <Drawing key={JSON.stringify(series.map(({ kind, label, tone }) => [kind, label, tone]))} {...plot} />
        )}
      </div>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>View as table</summary>
        <Table
          label={title}
          rows={rows}
          rowKey={({ at }) => at}
          columns={[
            from,
            ...series.map(
              ({ label, values }): Column<Row> => ({
                title: label,
                kind: "amount",
                value: ({ index }) => format(values[index] ?? 0)
              })
            )
          ]}
        />
      </details>
    </figure>
  )
}
