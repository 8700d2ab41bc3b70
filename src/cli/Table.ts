import { pluralize } from "../domain/Plural.ts"
import { padEnd, padStart, textWidth, truncate } from "./TextWidth.ts"

interface Column {
  readonly name: string
  readonly heading: string
  readonly texts: ReadonlyArray<string>
  readonly width: number
}

// By hand: @effect/printer has no tables, and takes wide characters for narrow ones.
export interface Table {
  readonly heading: string
  readonly lines: ReadonlyArray<string>
  /** Names the columns that were left out. */
  readonly remark: string | undefined
}

const gap = "  "

/** Prose, of which a beginning is enough; ids and amounts are whole or not shown. */
const prose = new Set(["detail", "failure", "last_error", "name", "note", "state", "url", "user_agent"])
const minProse = 12

const least = ({ heading, name, width }: Column) =>
  prose.has(name) ? Math.min(width, Math.max(minProse, heading.length)) : width

const total = (columns: ReadonlyArray<Column>, of: (column: Column) => number) =>
  columns.reduce((sum, column) => sum + of(column) + gap.length, -gap.length)

const isEmpty = ({ texts }: Column) => texts.every((text) => text === "-")

/** Columns without a value go first, then those on the right; what names a row stays. */
const drop = (columns: ReadonlyArray<Column>, most: number): ReadonlyArray<Column> => {
  if (total(columns, least) <= most) return columns
  const droppable = columns.filter(({ name }, index) => index > 0 && !/^(request_)?id$/.test(name))
  const next = droppable.findLast(isEmpty) ?? droppable.at(-1)
  return next === undefined
    ? columns
    : drop(
        columns.filter((column) => column !== next),
        most
      )
}

/** The widest prose gives way first. */
const shrink = (columns: ReadonlyArray<Column>, most: number): ReadonlyArray<Column> => {
  const excess = total(columns, ({ width }) => width) - most
  const shrinkable = columns.filter((column) => column.width > least(column)).toSorted((a, b) => b.width - a.width)
  const [widest, next] = shrinkable
  if (excess <= 0 || widest === undefined) return columns
  const width = Math.max(widest.width - excess, least(widest), Math.min(next?.width ?? 0, widest.width - 1))
  return shrink(
    columns.map((column) => (column === widest ? { ...column, width } : column)),
    most
  )
}

const isNumeric = (texts: ReadonlyArray<string>) =>
  texts.every((text) => /^(-|-?[\d.]+)$/.test(text)) && texts.some((text) => text !== "-")

const layOut = ({ texts, width }: Column) =>
  isNumeric(texts) ? (text: string) => padStart(text, width) : (text: string) => padEnd(truncate(text, width), width)

/** What is wider than `most` loses ends of prose and whole columns; what is too wide even so is left to the terminal. */
export const make = (names: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>, most: number): Table => {
  const columns = names.map((name, index): Column => {
    const heading = name.toUpperCase()
    const texts = rows.map((row) => row[index] ?? "")
    return {
      name,
      heading,
      texts,
      width: texts.reduce((most, text) => Math.max(most, textWidth(text)), heading.length)
    }
  })
  const shown = shrink(drop(columns, most), most)
  const layouts = shown.map((column) => ({ ...column, show: layOut(column) }))
  const line = (textOf: (column: Column) => string) =>
    layouts
      .map((column) => column.show(textOf(column)))
      .join(gap)
      .trimEnd()
  const hidden = names.filter((name) => shown.every((column) => column.name !== name))
  return {
    heading: line(({ heading }) => heading),
    lines: rows.map((_, index) => line(({ texts }) => texts[index] ?? "")),
    remark:
      hidden.length === 0
        ? undefined
        : `${pluralize(hidden.length, "column is", "columns are")} hidden to fit: ${hidden.join(", ")}; --json has all.`
  }
}
