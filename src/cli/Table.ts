import { pluralize } from "../domain/Plural.ts"

// By hand: string-width would save eight lines, for four packages.
const ascii = /^[ -~]*$/
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const invisible = /^\p{M}+$/u

const segmenter = new Intl.Segmenter()

const graphemes = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment)

const graphemeWidth = (grapheme: string) => (invisible.test(grapheme) ? 0 : wide.test(grapheme) ? 2 : 1)

/** Columns of a terminal that a text without control characters takes. */
export const textWidth = (text: string): number =>
  ascii.test(text) ? text.length : graphemes(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0)

/** What does not fit is replaced by an ellipsis. */
export const truncate = (text: string, width: number): string => {
  if (textWidth(text) <= width) return text
  let kept = ""
  let left = width - 1
  for (const grapheme of graphemes(text)) {
    left -= graphemeWidth(grapheme)
    if (left < 0) break
    kept += grapheme
  }
  return `${kept}…`
}

export const padEnd = (text: string, width: number) => text + " ".repeat(Math.max(0, width - textWidth(text)))
export const padStart = (text: string, width: number) => " ".repeat(Math.max(0, width - textWidth(text))) + text

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
