import { csvLine } from "../../domain/Csv.ts"
import { toUsdText } from "../../domain/Money.ts"
import { type ReconciledRow, tokensOf, type Verdict, verdicts } from "../../services/reconcile/Verdict.ts"
import * as Output from "../Output.ts"

export const columns = [
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

export type Format = "table" | "csv" | "json"

/** A terminal has no use for more. */
const mostShown = 1_000

export interface ReportHead {
  readonly provider: string
  readonly since: Date
  readonly until: Date
  /** A share, such as 0.01. */
  readonly tolerance: number
}

/** Keeps rows as the text that is printed: there may be a million of them. */
export class Report {
  readonly #format: Format
  readonly #counts = new Map<Verdict, number>(verdicts.map((verdict) => [verdict, 0]))
  readonly #texts: Array<Uint8Array> = []
  readonly #differences: Array<ReturnType<typeof recordOf>> = []
  #ours = 0n
  #theirs = 0n
  #hidden = 0

  constructor(format: Format) {
    this.#format = format
  }

  add(rows: ReadonlyArray<ReconciledRow>): void {
    const lines: Array<string> = []
    for (const row of rows) {
      this.#counts.set(row.verdict, (this.#counts.get(row.verdict) ?? 0) + 1)
      this.#ours += row.ours?.usd ?? 0n
      this.#theirs += row.theirs?.usd ?? 0n
      const record = recordOf(row)
      if (this.#format === "json") lines.push(Output.toJson(record, 0))
      else if (this.#format === "csv") lines.push(csvLine(columns.map((column) => record[column])))
      else if (row.verdict !== "matched" && this.#differences.length < mostShown) this.#differences.push(record)
      else if (row.verdict !== "matched") this.#hidden += 1
    }
    if (lines.length > 0) this.#texts.push(Buffer.from(lines.join(this.#format === "json" ? ",\n" : "\r\n")))
  }

  /** How many rows are beyond the tolerance. */
  get differing(): number {
    return verdicts.reduce(
      (sum, verdict) => (verdict === "matched" || verdict === "open" ? sum : sum + (this.#counts.get(verdict) ?? 0)),
      0
    )
  }

  *texts(head: ReportHead): Generator<string> {
    if (this.#format === "csv") yield* this.#csv()
    else if (this.#format === "json") yield* this.#json(head)
    else yield this.#table(head)
  }

  *#csv(): Generator<string> {
    yield csvLine(columns)
    for (const text of this.#texts) yield Buffer.from(text).toString("utf8")
  }

  *#json(head: ReportHead): Generator<string> {
    const { tolerance, ...named } = head
    const counts = Object.fromEntries(this.#counts)
    const start = { ...named, tolerance, verdicts: counts, ours_usd: this.#ours, theirs_usd: this.#theirs }
    yield `${Output.toJson(start, 0).slice(0, -1)},"data":[`
    for (const [index, text] of this.#texts.entries()) {
      yield `${index === 0 ? "" : ","}${Buffer.from(text).toString("utf8")}`
    }
    yield "]}"
  }

  #table({ provider, since, until }: ReportHead): string {
    const counts = Array.from(this.#counts, ([verdict, count]) => `${count} ${verdict}`).join(", ")
    const hidden = this.#hidden === 0 ? [] : [`${this.#hidden} more differ; --csv and --json have all.`]
    return [
      Output.table(this.#differences, columns, "Nothing differs."),
      ...hidden,
      `${provider}, ${since.toISOString()} to ${until.toISOString()}: ${counts}.`,
      `Ours ${toUsdText(this.#ours)} USD, theirs ${toUsdText(this.#theirs)} USD.`
    ].join("\n")
  }
}
