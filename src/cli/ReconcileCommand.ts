import { Command, Options } from "@effect/cli"
import { Clock, Effect, Redacted, Stream } from "effect"
import { csvLine, timeText } from "../domain/Csv.ts"
import type { ProviderAccount } from "../domain/Model.ts"
import { type PastMoment, pastForms, pastMoment, toPast } from "../domain/Moment.ts"
import { toUsdText } from "../domain/Money.ts"
import { pluralize } from "../domain/Wording.ts"
import { CommandFailed, UsageError } from "../ExitCode.ts"
import { type CsvColumns, type CsvField, csvFields, csvInvoices } from "../invoices/CsvInvoices.ts"
import { vendorInvoices, vendorOf, vendors } from "../invoices/VendorInvoices.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import {
  marginMillis,
  type ReconciledAccount,
  readLogStart,
  reconcileInvoices
} from "../services/reconcile/InvoiceReconciliation.ts"
import { type InvoiceSource, joinSpans, type Span } from "../services/reconcile/ProviderInvoices.ts"
import { type ReconciledRow, tokensOf, unitMillis, type Verdict, verdicts } from "../services/reconcile/Verdict.ts"
import type { Range } from "../services/telemetry/Usage.ts"
import { operator, readCatalogOptions } from "./CliServices.ts"
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

const maxTableRows = 1_000

interface ReportHead {
  readonly provider: string
  readonly since: Date
  readonly until: Date
  /** A fraction, such as 0.01. */
  readonly tolerance: number
}

/** Returns rows as text in batches, because there may be a million of them. A table collects only the rows that differ. */
class Report {
  readonly #format: Format
  readonly #head: ReportHead
  readonly #counts = new Map<Verdict, number>(verdicts.map((verdict) => [verdict, 0]))
  readonly #differences: Array<ReturnType<typeof recordOf>> = []
  #ours = 0n
  #theirs = 0n
  #outside: Span | undefined
  #hasBegun = false

  constructor(format: Format, head: ReportHead) {
    this.#format = format
    this.#head = head
  }

  /** Returns the text to print for these rows: none for a table, which `end` returns. */
  add(rows: ReadonlyArray<ReconciledRow>): ReadonlyArray<string> {
    const lines: Array<string> = []
    for (const row of rows) {
      this.#counts.set(row.verdict, (this.#counts.get(row.verdict) ?? 0) + 1)
      this.#ours += row.ours?.usd ?? 0n
      this.#theirs += row.theirs?.usd ?? 0n
      const record = recordOf(row)
      if (this.#format === "json") lines.push(Output.toJson(record, 0))
      else if (this.#format === "csv") lines.push(csvLine(columns.map((column) => record[column])))
      else if (row.verdict !== "matched" && this.#differences.length < maxTableRows) this.#differences.push(record)
    }
    if (lines.length === 0) return []
    const isFirst = !this.#hasBegun
    const head = this.#begin()
    if (this.#format === "csv") return [...head, lines.join("\n")]
    return [...head, `${isFirst ? "" : ","}${lines.join(",\n")}`]
  }

  /** Counts invoice entries that were read but lie outside the period. */
  addOutside(outside: Span): void {
    this.#outside = joinSpans(outside, this.#outside)
  }

  get compared(): number {
    return Array.from(this.#counts.values()).reduce((sum, count) => sum + count, 0)
  }

  /** A sentence about the entries of `addOutside`. Undefined if there are none. */
  get outside(): string | undefined {
    if (this.#outside === undefined) return undefined
    const { first, last, rows } = this.#outside
    const times = first === last ? `of ${timeOf(first)}` : `from ${timeOf(first)} to ${timeOf(last)}`
    return `Not compared: ${pluralize(rows, "row of the file is", "rows of the file are")} outside this period, ${times}.`
  }

  /** The number of rows that differ by more than the tolerance. */
  get differing(): number {
    return this.compared - (this.#counts.get("matched") ?? 0) - (this.#counts.get("open") ?? 0)
  }

  /** Returns the text to print after the last row. */
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

  // Begins with the first row, because invoices that are unreadable usually fail earlier, and then nothing must be printed.
  #begin(): ReadonlyArray<string> {
    if (this.#hasBegun) return []
    this.#hasBegun = true
    if (this.#format === "csv") return [csvLine(columns)]
    return [`${Output.toJson({ ...this.#head }, 0).slice(0, -1)},"data":[`]
  }

  #table({ provider, since, until }: ReportHead): string {
    const counts = Array.from(this.#counts, ([verdict, count]) => `${count} ${verdict}`).join(", ")
    const moreDiffering = this.compared - (this.#counts.get("matched") ?? 0) - this.#differences.length
    const hidden = moreDiffering === 0 ? [] : [`${moreDiffering} more differ. Use --csv or --json to list all.`]
    const none =
      this.compared === 0
        ? "Nothing was compared: neither the log nor the invoices have calls in this period."
        : "Nothing differs."
    return [
      Output.table(this.#differences, columns, this.#outside && this.compared === 0 ? "Nothing was compared." : none),
      ...hidden,
      ...(this.outside === undefined ? [] : [this.outside]),
      `${provider}, ${since.toISOString()} to ${until.toISOString()}: ${counts}.`,
      `Ours ${toUsdText(this.#ours)} USD, theirs ${toUsdText(this.#theirs)} USD.`
    ].join("\n")
  }
}

/** Exit code 1 means that rows differ, so a failure has another one. */
const fail = (message: string) => new CommandFailed({ message, exitCode: 2 })

const failUsage = (message: string) => new UsageError({ message })

const isField = (text: string): text is CsvField => csvFields.some((field) => field === text)

const columnForms = `pairs such as time=created,model=name,usd=cost of ${csvFields.join(", ")}`

/** Returns undefined if a pair is invalid or a required one is missing. */
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

/** The admin key is sent to this URL, so plain http is allowed only on this machine. */
const parseBaseUrl = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined
  const { hostname, href, password, protocol, username } = new URL(text)
  if (username !== "" || password !== "") return undefined
  return protocol === "https:" || (protocol === "http:" && loopback.has(hostname)) ? href : undefined
}

interface Selection {
  readonly since: PastMoment
  readonly until: PastMoment | undefined
  readonly file: string | undefined
  readonly columns: CsvColumns | undefined
  readonly baseUrl: string | undefined
}

/** Extends the period on both sides, for its rounding to whole days and for calls that are billed a day later. */
const widen = ({ since, until }: Pick<Selection, "since" | "until">, now: number): Range => ({
  from: toPast(since, now) - marginMillis - unitMillis.day,
  to: (until === undefined ? now : toPast(until, now)) + marginMillis + unitMillis.day
})

/** Reads invoices from the file, or without one from the API of the account's vendor. */
const openInvoices = Effect.fnUntraced(function* (account: ProviderAccount, selection: Selection) {
  const { baseUrl, columns, file } = selection
  if ((file === undefined) !== (columns === undefined))
    return yield* failUsage("--file and --columns must be used together.")
  if (file !== undefined && columns !== undefined) {
    if (baseUrl !== undefined) return yield* failUsage("--base-url cannot be combined with --file.")
    return yield* csvInvoices(file, columns, widen(selection, yield* Clock.currentTimeMillis))
  }
  const vendor = vendorOf(account)
  if (vendor === undefined) {
    const hosts = vendors.flatMap((vendor) => vendor.hosts).join(", ")
    return yield* fail(
      `The gateway cannot fetch invoices of ${account.name}: the host of its base_url is none of ${hosts}. Export them to a CSV file and use --file.`
    )
  }
  const key = process.env[vendor.variable]?.trim() ?? ""
  if (key === "") {
    return yield* fail(`${vendor.variable} is not set. ${vendor.name} returns its invoices only with an admin key.`)
  }
  return vendorInvoices(vendor, {
    baseUrl: baseUrl ?? vendor.baseUrl,
    key: Redacted.make(key),
    variable: vendor.variable
  })
})

/**
 * A window is a day, or an hour if all sources have finer data. Rounds durations and words such as `today` down to the start
 * of a window. Fails for a time that is not the start of one. The default end is the start of the current window, or its end
 * if the period would be empty.
 */
const readWholePeriod = Effect.fnUntraced(function* (
  selection: Pick<Selection, "since" | "until">,
  sources: ReadonlyArray<InvoiceSource>
) {
  const unit = sources.some((source) => source.unit === "day") ? "day" : "hour"
  const millis = unitMillis[unit]
  const now = yield* Clock.currentTimeMillis
  const toWindowStart = (option: string, when: PastMoment) => {
    if (!("at" in when)) return Effect.succeed(Math.floor(toPast(when, now) / millis) * millis)
    return when.at % millis === 0 ? Effect.succeed(when.at) : failUsage(`${option} must be the start of a UTC ${unit}.`)
  }
  const from = yield* toWindowStart("--since", selection.since)
  const currentStart = Math.floor(now / millis) * millis
  const currentEnd = Math.ceil(now / millis) * millis
  const until =
    selection.until === undefined
      ? from < currentStart
        ? currentStart
        : currentEnd
      : yield* toWindowStart("--until", selection.until)
  const range: Range = { from, to: Math.min(until, currentEnd) }
  if (range.from < range.to) return range
  return yield* failUsage(`--since must be before --until and in the past. A period is at least one UTC ${unit}.`)
})

const millionthsPerPercent = 10_000

const parseTolerance = (text: string): number | undefined => {
  const [, number] = /^(\d{1,3}(?:\.\d{1,4})?)\s*%?$/.exec(text.trim()) ?? []
  const percent = number === undefined ? Number.NaN : Number(number)
  return percent <= 100 ? Math.round(percent * millionthsPerPercent) : undefined
}

/** Providers with the same credential share one account and its invoices. */
const findAccount = ({ providers, saleStates }: CatalogSnapshot, provider: string) => {
  const named = providers.find(({ account }) => account.name === provider)
  if (named === undefined) return undefined
  const sharing = providers.filter(
    ({ account, variable }) => variable !== undefined && variable === named.variable && account.baseUrl !== undefined
  )
  const names = new Set([provider, ...sharing.map(({ account }) => account.name)])
  const routes = saleStates.flatMap(
    ({ model }): ReadonlyArray<{ id: string; model: string; provider: { name: string } }> => [...model.routes]
  )
  const models = new Map(routes.flatMap((route) => (names.has(route.provider.name) ? [[route.id, route.model]] : [])))
  return { account: named.account, own: { providers: names, models } satisfies ReconciledAccount }
}

const minProgressRangeMillis = 45 * 86_400_000

const printProgress = (unit: string, doneSteps: number, allSteps: number) =>
  Effect.sync(() =>
    process.stderr.write(
      `gateway: by ${unit}: ${doneSteps} of ${pluralize(allSteps, "part is", "parts are")} compared\n`
    )
  )

const toPercent = (millionths: number) => `${millionths / millionthsPerPercent} %`

export const reconcile = Command.make(
  "reconcile",
  {
    provider: Inputs.word("PROVIDER", "a provider in the catalog, as in gateway reconcile openai --since 7d"),
    since: Inputs.option("since", pastForms, pastMoment).pipe(
      Options.withDescription(
        `start time: ${pastForms}; must be the start of a UTC day (or of an hour, when comparing by request id)`
      )
    ),
    until: Inputs.optional(
      Inputs.option("until", pastForms, pastMoment),
      "end time, exclusive; default: the end of the last complete day or hour"
    ),
    file: Inputs.optional(Inputs.text("file"), "a CSV file with the provider's invoices"),
    columns: Inputs.optional(
      Inputs.option("columns", columnForms, parseColumns),
      "maps fields to CSV column names: time=…,model=…,usd=…; optionally request_id, prompt_tokens, completion_tokens"
    ),
    tolerance: Inputs.optional(
      Inputs.option("tolerance", "a percentage from 0 to 100", parseTolerance),
      "allowed difference, in percent of the larger amount; if a row exceeds it, the exit code is 1; default: 1%"
    ),
    baseUrl: Inputs.optional(
      Inputs.option("base-url", "an https URL, or http on this machine", parseBaseUrl),
      "base URL of the vendor's invoice API; default: the official URL"
    ),
    csv: Inputs.csv,
    json: Inputs.json
  },
  Effect.fnUntraced(
    function* ({ baseUrl, columns, csv, file, json, provider, since, tolerance = millionthsPerPercent, until }) {
      if (csv && json) return yield* failUsage("--csv cannot be combined with --json.")
      const match = findAccount(yield* Effect.flatMap(readCatalogOptions, Catalog.make), provider)
      if (match === undefined) return yield* fail(`The catalog has no provider ${provider}.`)
      const sources = yield* openInvoices(match.account, { since, until, file, columns, baseUrl })
      const range = yield* readWholePeriod({ since, until }, sources)
      const logStart = yield* readLogStart
      const isByRequest = sources.some(({ unit }) => unit === "request")
      if (isByRequest && logStart !== null && logStart.getTime() > range.from - marginMillis) {
        return yield* fail(
          `A comparison by request id needs the log, which starts at ${logStart.toISOString()}. Use a later --since.`
        )
      }
      const report = new Report(json ? "json" : csv ? "csv" : "table", {
        provider,
        since: new Date(range.from),
        until: new Date(range.to),
        tolerance: tolerance / (100 * millionthsPerPercent)
      })
      const print = (texts: ReadonlyArray<string>) => Effect.forEach(texts, Output.print, { discard: true })
      const hasProgress = range.to - range.from > minProgressRangeMillis
      const rows = reconcileInvoices({
        sources,
        account: match.own,
        range,
        tolerance,
        onOutside: (outside) => Effect.sync(() => report.addOutside(outside)),
        onStep: ({ unit }, done, all) => (hasProgress ? printProgress(unit, done, all) : Effect.void)
      })
      yield* Stream.runForEach(rows, (batch) => Effect.suspend(() => print(report.add(batch))))
      yield* print(report.end())
      const { compared, differing, outside } = report
      if (csv && outside !== undefined) yield* Effect.sync(() => process.stderr.write(`gateway: ${outside}\n`))
      if (compared === 0 && outside !== undefined) return yield* fail(`${file} has no row in this period.`)
      if (differing === 0) return
      const message = `${pluralize(differing, "row differs", "rows differ")} by more than ${toPercent(tolerance)}.`
      return yield* new CommandFailed({ message })
    },
    Effect.catchTag("InvoicesUnreadable", ({ message }) => fail(message))
  )
).pipe(Command.withDescription("Compare a provider's invoices with the request log."), Command.provide(operator))
