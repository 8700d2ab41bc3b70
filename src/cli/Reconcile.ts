import { Command, Options } from "@effect/cli"
import { Clock, Effect, Redacted, Stream } from "effect"
import { type CsvColumns, type CsvField, csvBooks, csvFields } from "../books/CsvBooks.ts"
import { vendorBooks, vendorOf, vendors } from "../books/Vendors.ts"
import { csvLine, timeText } from "../domain/Csv.ts"
import type { ProviderAccount } from "../domain/Model.ts"
import { type PastMoment, pastForms, pastMoment, toPast } from "../domain/Moment.ts"
import { toUsdText } from "../domain/Money.ts"
import { pluralize } from "../domain/Plural.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import {
  marginMillis,
  type ReconciledAccount,
  reconcileBooks,
  rowsKeptFrom
} from "../services/reconcile/BookReconciliation.ts"
import { type Book, joinSpans, type Span } from "../services/reconcile/ProviderBooks.ts"
import { type ReconciledRow, tokensOf, unitMillis, type Verdict, verdicts } from "../services/reconcile/Verdict.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator, readCatalogOptions } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
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
class Report {
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

const fail = (message: string) => new CommandFailed({ message, exitCode: 2 })

const isField = (text: string): text is CsvField => csvFields.some((field) => field === text)

const columnForms = `pairs such as time=created,model=name,usd=cost of ${csvFields.join(", ")}`

/** Undefined where they are none, or one that must be there is missing. */
const parseColumns = (text: string): CsvColumns | undefined => {
  const columns = new Map<CsvField, string>()
  for (const pair of text.split(",")) {
    const [field = "", column = "", ...more] = pair.split("=").map((part) => part.trim())
    if (!isField(field) || column === "" || more.length > 0 || columns.has(field)) return undefined
    columns.set(field, column)
  }
  return columns.has("time") && columns.has("model") && columns.has("usd") ? columns : undefined
}

const loopback = new Set(["localhost", "127.0.0.1", "[::1]"])

/** The key goes there: nowhere in the clear but to this machine. */
const parseBaseUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hostname, href, password, protocol, username } = new URL(text)
  if (username !== "" || password !== "") return undefined
  return protocol === "https:" || (protocol === "http:" && loopback.has(hostname)) ? href : undefined
}

interface Given {
  readonly since: PastMoment
  readonly until: PastMoment | undefined
  readonly file: string | undefined
  readonly columns: CsvColumns | undefined
  readonly baseUrl: string | undefined
}

/** The period, with a margin for rounding to whole days and for bills that come a day later. */
const widen = ({ since, until }: Pick<Given, "since" | "until">, now: number): Range => ({
  from: toPast(since, now) - marginMillis - unitMillis.day,
  to: (until === undefined ? now : toPast(until, now)) + marginMillis + unitMillis.day
})

/** The books of the account's vendor, or those of the file. */
const openBooks = Effect.fnUntraced(function* (account: ProviderAccount, given: Given) {
  const { baseUrl, columns, file } = given
  if ((file === undefined) !== (columns === undefined)) return yield* fail("--file and --columns go together.")
  if (file !== undefined && columns !== undefined) {
    if (baseUrl !== undefined) return yield* fail("--base-url does not go with --file.")
    return yield* csvBooks(file, columns, widen(given, yield* Clock.currentTimeMillis))
  }
  const vendor = vendorOf(account)
  if (vendor === undefined) {
    const known = vendors.flatMap(({ hosts }) => hosts).join(", ")
    return yield* fail(
      `The books of ${account.name} are not known: its base_url is at none of ${known}. Export them: see --file.`
    )
  }
  const key = process.env[vendor.variable]?.trim() ?? ""
  if (key === "") return yield* fail(`${vendor.variable} is not set: ${vendor.name} shows its books to an admin key.`)
  return vendorBooks(vendor, { baseUrl: baseUrl ?? vendor.baseUrl, key: Redacted.make(key), variable: vendor.variable })
})

/**
 * Rounds durations and words such as `today` down to whole windows (days or hours); refuses a time within a window. The
 * default end is that of the last whole window, or of the current one if the period begins with it.
 */
const readWholePeriod = Effect.fnUntraced(function* (
  given: Pick<Given, "since" | "until">,
  books: ReadonlyArray<Book>
) {
  const name = books.some(({ unit }) => unit === "day") ? "day" : "hour"
  const millis = unitMillis[name]
  const now = yield* Clock.currentTimeMillis
  const toWhole = (option: string, when: PastMoment) => {
    if (!("at" in when)) return Effect.succeed(Math.floor(toPast(when, now) / millis) * millis)
    return when.at % millis === 0 ? Effect.succeed(when.at) : fail(`${option} must be the beginning of a UTC ${name}.`)
  }
  const from = yield* toWhole("--since", given.since)
  const running = Math.floor(now / millis) * millis
  const end = Math.ceil(now / millis) * millis
  const until = given.until === undefined ? (from < running ? running : end) : yield* toWhole("--until", given.until)
  const range: Range = { from, to: Math.min(until, end) }
  if (range.from < range.to) return range
  return yield* fail(`--since must be before --until and in the past; a period is at least one UTC ${name}.`)
})

const millionthsInPercent = 10_000

const parseTolerance = (text: string): number | undefined => {
  const [, number] = /^(\d{1,3}(?:\.\d{1,4})?)\s*%?$/.exec(text.trim()) ?? []
  const percent = number === undefined ? Number.NaN : Number(number)
  return percent <= 100 ? Math.round(percent * millionthsInPercent) : undefined
}

/** Providers that call with one credential share one account, and so its books. */
const accountOf = ({ offers, providers }: CatalogSnapshot, provider: string) => {
  const found = providers.find(({ account }) => account.name === provider)
  if (found === undefined) return undefined
  const sharing = providers.filter(
    ({ account, variable }) => variable !== undefined && variable === found.variable && account.baseUrl !== undefined
  )
  const names = new Set([provider, ...sharing.map(({ account }) => account.name)])
  const routes = offers.flatMap(
    ({ model }): ReadonlyArray<{ id: string; model: string; provider: { name: string } }> => [...model.routes]
  )
  const models = new Map(routes.flatMap((route) => (names.has(route.provider.name) ? [[route.id, route.model]] : [])))
  return { account: found.account, own: { providers: names, models } satisfies ReconciledAccount }
}

const longMillis = 45 * 86_400_000

const showProgress = (unit: string, done: number, all: number) =>
  Effect.sync(() =>
    process.stderr.write(`gateway: by ${unit}: ${done} of ${pluralize(all, "part is", "parts are")} compared\n`)
  )

const percent = (millionths: number) => `${millionths / millionthsInPercent} %`

export const reconcile = Command.make(
  "reconcile",
  {
    provider: Inputs.word("PROVIDER", "a provider of the catalog, as in gateway reconcile openai --since 7d"),
    since: Inputs.option("since", pastForms, pastMoment).pipe(
      Options.withDescription(
        `the start: ${pastForms}; a time must begin a UTC day, or an hour to compare by request id`
      )
    ),
    until: Inputs.optional(
      Inputs.option("until", pastForms, pastMoment),
      "the end, exclusive; default: the end of the last whole day or hour"
    ),
    file: Inputs.optional(Inputs.text("file"), "a CSV file with the provider's books"),
    columns: Inputs.optional(
      Inputs.option("columns", columnForms, parseColumns),
      "what the file's columns hold: time=…,model=…,usd=… and, where it has them, request_id, prompt_tokens, completion_tokens"
    ),
    tolerance: Inputs.optional(
      Inputs.option("tolerance", "a percentage from 0 to 100", parseTolerance),
      "what may differ, in percent of the larger amount: exit code 1 where more does; default: 1%"
    ),
    baseUrl: Inputs.optional(
      Inputs.option("base-url", "an https URL, or http on this machine", parseBaseUrl),
      "where the provider's books are read; default: the vendor's"
    ),
    csv: Inputs.csv,
    json: Inputs.json
  },
  Effect.fnUntraced(
    function* ({ baseUrl, columns, csv, file, json, provider, since, tolerance = millionthsInPercent, until }) {
      if (csv && json) return yield* fail("--csv does not go with --json.")
      const found = accountOf(yield* Effect.flatMap(readCatalogOptions, Catalog.make), provider)
      if (found === undefined) return yield* fail(`The catalog has no provider ${provider}.`)
      const books = yield* openBooks(found.account, { since, until, file, columns, baseUrl })
      const range = yield* readWholePeriod({ since, until }, books)
      const kept = yield* rowsKeptFrom
      if (books.some(({ unit }) => unit === "request") && kept !== null && kept.getTime() > range.from - marginMillis) {
        return yield* fail(
          `Requests of before ${kept.toISOString()} are no longer in the log, and calls are compared by their ids: begin later.`
        )
      }
      const report = new Report(json ? "json" : csv ? "csv" : "table", {
        provider,
        since: new Date(range.from),
        until: new Date(range.to),
        tolerance: tolerance / (100 * millionthsInPercent)
      })
      const print = (texts: ReadonlyArray<string>) => Effect.forEach(texts, Output.print, { discard: true })
      const isLong = range.to - range.from > longMillis
      const rows = reconcileBooks({
        books,
        account: found.own,
        range,
        tolerance,
        onOutside: (outside) => Effect.sync(() => report.addOutside(outside)),
        onStep: ({ unit }, done, all) => (isLong ? showProgress(unit, done, all) : Effect.void)
      })
      yield* Stream.runForEach(rows, (some) => Effect.suspend(() => print(report.add(some))))
      yield* print(report.end())
      const { compared, differing, outside } = report
      if (csv && outside !== undefined) yield* Effect.sync(() => process.stderr.write(`gateway: ${outside}\n`))
      if (compared === 0 && outside !== undefined) return yield* fail(`${file} has no row in this period.`)
      if (differing === 0) return
      const message = `${pluralize(differing, "row differs", "rows differ")} by more than ${percent(tolerance)}.`
      return yield* new CommandFailed({ message })
    },
    Effect.catchTag("BooksUnreadable", ({ message }) => fail(message))
  )
).pipe(Command.withDescription("Compare a provider's own books with ours."), Command.provide(operator))
