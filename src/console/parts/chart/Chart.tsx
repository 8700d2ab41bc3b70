import { useEffect, useRef, useState } from "preact/hooks"
import { formatLocal } from "../../format/Moment.ts"
import { Table } from "../Table.tsx"
import { timeTicks, valueTicks } from "./Ticks.ts"

export interface Series {
  readonly label: string
  readonly kind: "bar" | "line"
  /** The numbered ones tell categories apart. */
  readonly tone: "accent" | "soft" | "warn" | "bad" | "c1" | "c2" | "c3" | "c4" | "c5" | "c6"
  /** One for each time. */
  readonly values: ReadonlyArray<number | null>
}

interface Plot {
  readonly times: ReadonlyArray<number>
  readonly series: ReadonlyArray<Series>
  /** Writes a value in full. */
  readonly format: (value: number) => string
  /** Writes a value of the axis. */
  readonly formatTick: (value: number) => string
  /** Whether bars stand on those before them, instead of before them. */
  readonly isStacked?: boolean
}

const height = 180
const margin = { top: 8, right: 4, bottom: 22, left: 52 }
const plotHeight = height - margin.top - margin.bottom
const pixelsPerTick = 64

const useWidth = () => {
  const element = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  useEffect(() => {
    if (element.current === null) return
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)))
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return [element, width] as const
}

const Tip = ({ format, index, series, times, x }: Plot & { readonly index: number; readonly x: number }) => (
  <div class={x > 0.5 ? "tip left" : "tip"} style={{ left: `${x * 100}%` }}>
    <strong>{formatLocal(times[index] ?? 0).slice(0, -3)}</strong>
    {series.map(({ label, tone, values }) => (
      <span key={label}>
        <i class={tone} /> {label} <b>{format(values[index] ?? 0)}</b>
      </span>
    ))}
  </div>
)

/** What the bars of each series stand on. */
const basesOf = ({ isStacked = false, series, times }: Plot): ReadonlyArray<ReadonlyArray<number>> =>
  series.map((_, at) =>
    times.map((_, index) =>
      isStacked ? series.slice(0, at).reduce((sum, { values }) => sum + (values[index] ?? 0), 0) : 0
    )
  )

const Shape = ({
  bases,
  series: { kind, tone, values },
  x,
  y
}: {
  readonly series: Series
  readonly bases: ReadonlyArray<number>
  readonly x: (index: number) => number
  readonly y: (value: number) => number
}) => {
  const slot = x(1) - x(0)
  if (kind === "line") {
    const points = values.flatMap((value, index) => (value === null ? [] : [`${x(index) + slot / 2},${y(value)}`]))
    return <polyline class={tone} points={points.join(" ")} />
  }
  const gap = Math.min(4, slot * 0.25)
  return (
    <g class={tone}>
      {values.map((value, index) => {
        if (value === null || value <= 0) return null
        const foot = y(bases[index] ?? 0)
        // What is there is seen, however small.
        const top = Math.min(y((bases[index] ?? 0) + value), foot - 1)
        return <rect key={index} x={x(index) + gap / 2} width={slot - gap} y={top} height={foot - top} rx={1} />
      })}
    </g>
  )
}

const Drawing = ({ plot, title, width }: { readonly plot: Plot; readonly title: string; readonly width: number }) => {
  const [at, setAt] = useState<number>()
  const { formatTick, series, times } = plot
  const bases = basesOf(plot)
  const most = Math.max(
    ...series.flatMap(({ values }, at) => values.map((value, i) => (bases[at]?.[i] ?? 0) + (value ?? 0)))
  )
  const ticks = valueTicks(most)
  const top = ticks.at(-1) ?? 1
  const plotWidth = width - margin.left - margin.right
  const x = (index: number) => margin.left + (index / times.length) * plotWidth
  const y = (value: number) => margin.top + plotHeight * (1 - value / top)
  const point = ({ currentTarget, clientX }: PointerEvent) => {
    if (!(currentTarget instanceof Element)) return
    const offset = clientX - currentTarget.getBoundingClientRect().left - margin.left
    const index = Math.floor((offset / plotWidth) * times.length)
    setAt(index >= 0 && index < times.length ? index : undefined)
  }
  return (
    <>
      <svg
        role="img"
        aria-label={`${title}: at most ${plot.format(Number(Math.max(most, 0).toFixed(9)))}`}
        width={width}
        height={height}
        onPointerDown={point}
        onPointerMove={point}
        onPointerLeave={() => setAt(undefined)}
      >
        {ticks.map((value) => (
          <g key={value} class="grid">
            <line x1={margin.left} x2={width - margin.right} y1={y(value)} y2={y(value)} />
            <text x={margin.left - 8} y={y(value)} dy="0.32em" text-anchor="end">
              {formatTick(value)}
            </text>
          </g>
        ))}
        {timeTicks(times, Math.max(1, Math.floor(plotWidth / pixelsPerTick))).map(({ index, label }) => (
          <text key={index} x={x(index)} y={height - 5}>
            {label}
          </text>
        ))}
        {at !== undefined && <rect class="cursor" x={x(at)} width={x(1) - x(0)} y={margin.top} height={plotHeight} />}
        {series.map((one, index) => (
          <Shape key={one.label} series={one} bases={bases[index] ?? []} x={x} y={y} />
        ))}
      </svg>
      {at !== undefined && <Tip {...plot} index={at} x={x(at + 0.5) / width} />}
    </>
  )
}

/** Bars and lines over equal steps of time, with the same as a table. */
export const Chart = ({ title, ...plot }: Plot & { readonly title: string }) => {
  const [element, width] = useWidth()
  const [isOpen, setOpen] = useState(false)
  const rows = isOpen ? plot.times.map((at, index) => ({ at, index })).toReversed() : []
  return (
    <figure class="chart panel">
      <figcaption>
        <h2>{title}</h2>
        {plot.series.length > 1 &&
          plot.series.map(({ label, tone }) => (
            <span key={label}>
              <i class={tone} /> {label}
            </span>
          ))}
      </figcaption>
      <div ref={element} class="drawing">
        {width > 0 && plot.times.length > 0 && <Drawing plot={plot} title={title} width={width} />}
      </div>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>As a table</summary>
        <Table
          label={title}
          rows={rows}
          rowKey={({ at }) => at}
          columns={[
            { title: "From", kind: "time", value: ({ at }) => at },
            ...plot.series.map(({ label, values }) => ({
              title: label,
              kind: "amount" as const,
              value: ({ index }: { readonly index: number }) => plot.format(values[index] ?? 0)
            }))
          ]}
        />
      </details>
    </figure>
  )
}
