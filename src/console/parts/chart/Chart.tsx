import { useEffect, useRef, useState } from "preact/hooks"
import UPlot from "uplot"
import { formatLocal, formatUtc } from "../../format/Moment.ts"
import { useTheme } from "../../Theme.ts"
import { type Column, Table } from "../Table.tsx"

interface Series {
  readonly label: string
  readonly kind: "bar" | "line"
  /** A colour of the style sheet; the numbered ones tell categories apart. */
  readonly tone: "accent" | "soft" | "warn" | "bad" | "c1" | "c2" | "c3" | "c4" | "c5"
  /** One for each time. */
  readonly values: ReadonlyArray<number | null>
}

interface Plot {
  readonly title: string
  /** The beginnings of days of UTC, or of hours, which are shown in the reader's zone. */
  readonly times: ReadonlyArray<number>
  readonly step: "day" | "hour"
  readonly series: ReadonlyArray<Series>
  /** Writes a value in full. */
  readonly format: (value: number) => string
  /** Writes a value of the axis. */
  readonly formatTick: (value: number) => string
  /** Whether bars stand on those before them, instead of before them. */
  readonly isStacked?: boolean
}

const seconds = { day: 86_400, hour: 3600 } as const
const { day, hour } = seconds
const increments = [hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 90 * day, 365 * day]
/** The least increment, its label, and what is added where another year or day begins. */
const timeLabels = [
  [365 * day, "{YYYY}", null, null, null, null, null, null, 1],
  [30 * day, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [day, "{D} {MMM}", null, null, null, null, null, null, 1],
  [0, "{HH}:{mm}", null, null, "\n{D} {MMM}", null, null, null, 1]
]
const bars = UPlot.paths.bars?.({ size: [0.8, 40] })

/** As the canvas needs it, in the theme that is shown. */
const colourOf =
  (name: string) =>
  ({ root }: UPlot): string => {
    root.style.outlineColor = `var(--${name})`
    return getComputedStyle(root).outlineColor
  }

/** What is drawn later covers what is before it: the first of a stack is drawn last. */
const drawnOf = ({ isStacked = false, series }: Plot): ReadonlyArray<Series> =>
  isStacked ? series.toReversed() : series

/** The bars of a stack reach as far as they and those below. */
const dataOf = (plot: Plot): [Array<number>, ...Array<Array<number | null>>] => [
  [...plot.times],
  ...drawnOf(plot).map(({ values }, at, drawn) =>
    values.map((value, index) => {
      const below = plot.isStacked ? drawn.slice(at + 1) : []
      const reached = below.reduce((sum, { values }) => sum + (values[index] ?? 0), value ?? 0)
      return value === null || reached <= 0 ? null : reached
    })
  )
]

/** Beside the pointer, within the plot. */
const placeTip = ({ cursor: { left = 0 }, over }: UPlot) => {
  const tip = over.querySelector("table")
  if (tip === null) return
  const [width, room] = [tip.offsetWidth, over.clientWidth]
  const beside = left > room / 2 ? left - width - 16 : left + 16
  tip.style.left = `${Math.max(0, Math.min(beside, room - width))}px`
}

/** What it writes is that of the latest plot; series of other names need other options. */
const optionsOf = (latest: () => Plot): Omit<UPlot.Options, "width" | "height"> => {
  const { step } = latest()
  const half = seconds[step] / 2
  const axis: UPlot.Axis = { font: "11px system-ui, sans-serif", stroke: colourOf("soft"), ticks: { show: false } }
  const timeOf = (at: number) => (step === "day" ? `${formatUtc(at).slice(0, 10)} UTC` : formatLocal(at).slice(0, -3))
  return {
    padding: [8, 16, 0, 0],
    tzDate: (at) => (step === "day" ? UPlot.tzDate(new Date(at * 1000), "UTC") : new Date(at * 1000)),
    scales: {
      x: { range: (_, first, last) => [first - half, last + half] },
      y: { range: (_, __, most) => UPlot.rangeNum(0, most || 1, 0.1, true) }
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
        size: (_, texts: ReadonlyArray<string> | null) => 14 + 6.5 * Math.max(3, ...(texts ?? []).map((t) => t.length)),
        values: (_, ticks) => ticks.map(latest().formatTick)
      }
    ],
    cursor: { y: false, points: { show: false }, drag: { x: false } },
    legend: {
      mount: (self, tip) => self.over.append(tip),
      markers: { width: 0, fill: (_, at) => `var(--${drawnOf(latest())[at - 1]?.tone})` }
    },
    hooks: { setCursor: [placeTip] },
    series: [
      { label: step === "day" ? "Day" : "Hour", value: (_, at) => timeOf(at) },
      ...drawnOf(latest()).map(({ kind, label, tone }, at) => ({
        label,
        stroke: colourOf(tone),
        value: (_: UPlot, __: unknown, ___: unknown, index: number | null) =>
          index === null ? "" : latest().format(drawnOf(latest())[at]?.values[index] ?? 0),
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
    const drawn = new UPlot({ ...optionsOf(() => latest.current), ...size() }, undefined, target)
    drawing.current = drawn
    const observer = new ResizeObserver(() => drawn.setSize(size()))
    observer.observe(target)
    const redraw = () => drawn.redraw()
    const scheme = matchMedia("(prefers-color-scheme: dark)")
    scheme.addEventListener("change", redraw)
    return () => {
      scheme.removeEventListener("change", redraw)
      observer.disconnect()
      drawn.destroy()
    }
  }, [])
  useTheme()
  const data = dataOf(plot)
  useEffect(() => drawing.current?.setData(data))
  const most = Math.max(0, ...data.slice(1).flatMap((values) => values.map(Number)))
  return <div ref={element} role="img" aria-label={`${plot.title}: at most ${plot.format(Number(most.toFixed(9)))}`} />
}

interface Row {
  readonly at: number
  readonly index: number
}

/** Bars and lines over equal steps of time, with the same as a table. */
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
        <summary>As a table</summary>
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
