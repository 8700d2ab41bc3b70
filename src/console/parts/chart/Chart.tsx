import { useEffect, useRef, useState } from "preact/hooks"
import UPlot from "uplot"
import { formatUtc } from "../../format/Moment.ts"
import { useTheme } from "../../Theme.ts"
import { type Column, Table } from "../Table.tsx"
import { dataOf, optionsOf, type Plot } from "./Plot.ts"

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
