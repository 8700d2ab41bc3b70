import { csvLine, timeText } from "../domain/Csv.ts"
import { toUsdText } from "../domain/Money.ts"
import { pluralize } from "../domain/Plural.ts"
import { joinSpans, type Span } from "../services/reconcile/ProviderBooks.ts"
import { type ReconciledRow, tokensOf, type Verdict, verdicts } from "../services/reconcile/Verdict.ts"
import * as Output from "./Output.ts"

const columns = [
  "at",
  "model",
  "request_id",
  "ours_usd",
  "theirs_usd",
  "ours_tokens",
  "theirs_tokens",
  "verdict"
] as const

const recordOf = ({ at, model, ours, requestId, theirs, verdict }: ReconciledRow) => ({
  at: new Date(at),
  model,
  request_id: requestId,
  ours_usd: ours?.usd ?? null,
  theirs_usd: theirs?.usd ?? null,
  ours_tokens: tokensOf(ours),
  theirs_tokens: tokensOf(theirs),
  verdict
})

type Format = "table" | "csv" | "json"

const timeOf = (at: number) => timeText(new Date(at))

/** A terminal has no use for more. */
const maxShown = 1_000

interface ReportHead {
  readonly provider: string
  readonly since: Date
  readonly until: Date
  /** A share, such as 0.01. */
  readonly tolerance: number
}

/** Says what is to be printed as rows come: there may be a million of them. */
export class Report {
  readonly #format: Format
  readonly #head: ReportHead
  readonly #counts = new Map<Verdict, number>(verdicts.map((verdict) => [verdict, 0]))
  readonly #differences: Array<ReturnType<typeof recordOf>> = []
  #ours = 0n
  #theirs = 0n
  #outside: Span | undefined
  #isBegun = false

  constructor(format: Format, head: ReportHead) {
    this.#format = format
    this.#head = head
  }

  /** The text of these rows; a table comes at the end. */
  add(rows: ReadonlyArray<ReconciledRow>): ReadonlyArray<string> {
    const lines: Array<string> = []
    for (const row of rows) {
      this.#counts.set(row.verdict, (this.#counts.get(row.verdict) ?? 0) + 1)
      this.#ours += row.ours?.usd ?? 0n
      this.#theirs += row.theirs?.usd ?? 0n
      const record = recordOf(row)
      if (this.#format === "json") lines.push(Output.toJson(record, 0))
      else if (this.#format === "csv") lines.push(csvLine(columns.map((column) => record[column])))
      else if (row.verdict !== "matched" && this.#differences.length < maxShown) this.#differences.push(record)
    }
    if (lines.length === 0) return []
    const isFirst = !this.#isBegun
    const head = this.#begin()
    if (this.#format === "csv") return [...head, lines.join("\n")]
    return [...head, `${isFirst ? "" : ","}${lines.join(",\n")}`]
  }

  /** Adds entries of the books outside the period. */
  addOutside(outside: Span): void {
    this.#outside = joinSpans(outside, this.#outside)
  }

  /** The number of rows with a verdict. */
  get compared(): number {
    return Array.from(this.#counts.values()).reduce((sum, count) => sum + count, 0)
  }

  /** A sentence about the entries that were not compared; undefined if all were. */
  get outside(): string | undefined {
    if (this.#outside === undefined) return undefined
    const { first, last, rows } = this.#outside
    const times = first === last ? `of ${timeOf(first)}` : `from ${timeOf(first)} to ${timeOf(last)}`
    return `Not compared: ${pluralize(rows, "row of the file is", "rows of the file are")} outside this period, ${times}.`
  }

  /** How many rows are beyond the tolerance. */
  get differing(): number {
    return this.compared - (this.#counts.get("matched") ?? 0) - (this.#counts.get("open") ?? 0)
  }

  /** The rest, once all rows have come. */
  end(): ReadonlyArray<string> {
    if (this.#format === "table") return [this.#table(this.#head)]
    const head = this.#begin()
    if (this.#format === "csv") return head
    const outside = this.#outside && {
      rows: this.#outside.rows,
      first: new Date(this.#outside.first),
      last: new Date(this.#outside.last)
    }
    const sums = {
      verdicts: Object.fromEntries(this.#counts),
      ours_usd: this.#ours,
      theirs_usd: this.#theirs,
      outside: outside ?? null
    }
    return [...head, `],${Output.toJson(sums, 0).slice(1)}`]
  }

  // Not before the first row: most books that cannot be read say so at once, and then nothing is printed.
  #begin(): ReadonlyArray<string> {
    if (this.#isBegun) return []
    this.#isBegun = true
    if (this.#format === "csv") return [csvLine(columns)]
    return [`${Output.toJson({ ...this.#head }, 0).slice(0, -1)},"data":[`]
  }

  #table({ provider, since, until }: ReportHead): string {
    const counts = Array.from(this.#counts, ([verdict, count]) => `${count} ${verdict}`).join(", ")
    const more = this.compared - (this.#counts.get("matched") ?? 0) - this.#differences.length
    const hidden = more === 0 ? [] : [`${more} more differ; --csv and --json have all.`]
    const none =
      this.compared === 0 ? "Nothing was compared: neither side has calls in this period." : "Nothing differs."
    return [
      Output.table(this.#differences, columns, this.#outside && this.compared === 0 ? "Nothing was compared." : none),
      ...hidden,
      ...(this.outside === undefined ? [] : [this.outside]),
      `${provider}, ${since.toISOString()} to ${until.toISOString()}: ${counts}.`,
      `Ours ${toUsdText(this.#ours)} USD, theirs ${toUsdText(this.#theirs)} USD.`
    ].join("\n")
  }
}
