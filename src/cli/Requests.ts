import { Command } from "@effect/cli"
import { Chunk, Clock, Duration, Effect, Schedule, Stream } from "effect"
import { KeyId } from "../domain/ApiKey.ts"
import { type Model, modelAt } from "../domain/Model.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { parseRange, rangeForms } from "../services/access/AddressRange.ts"
import { ApiKeys } from "../services/access/ApiKeys.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { type ExplainedRequest, explainRequest } from "../services/admin/requests/Explanation.ts"
import { csvLines, logRecords, pagesOf, type RequestFilter } from "../services/admin/requests/Pages.ts"
import {
  type Groupings,
  groupingForms,
  parseGroupings,
  usageColumns,
  usageCsv,
  usageRecord,
  usageSums
} from "../services/admin/UsageRecord.ts"
import { type VideoRecord } from "../services/admin/VideoAdmin.ts"
import { readOffers } from "../services/catalog/Catalog.ts"
import { type RequestQuery, type StatusFilter } from "../services/telemetry/RequestListing.ts"
import { RequestLog, type RequestRow } from "../services/telemetry/RequestLog.ts"
import { Usage } from "../services/telemetry/Usage.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, filterOf } from "./Commands.ts"
import { operator, readCatalogOptions, settings } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

export const requestArgument = Inputs.word(
  "REQUEST_ID",
  "the x-request-id of an answer, or the id of a row of gateway requests --json"
)

const maxShown = 100

const findRequests = Effect.fnUntraced(function* (id: string) {
  const { list } = yield* RequestLog
  const rows = yield* list(OrganizationScope.all, { id, limit: maxShown })
  return rows.length === 0 ? yield* new CommandFailed({ message: `There is no request ${id} in the log.` }) : rows
})

const problemOf = ({ error }: VideoRecord) => (error === null ? "" : `: ${error.code}: ${error.message}`)

const partColumns = ["unit", "quantity", "rate_usd", "per", "amount_usd"]

const describeRequest = (org: string, document: ExplainedRequest): Output.Output => {
  const { attempts: _attempts, charge_usd: _charge, cost_usd: _cost, ...rest } = document
  const { entries, hold: _hold, price, timeline, video, ...request } = rest
  const { parts, ...sums } = price
  const { error } = request
  const sections = [
    Output.sheet({
      ...request,
      error: error?.message ?? null,
      ...(error && { param: error.param, hint: error.hint }),
      org,
      ...(video && { video: `${video.id} ${video.status} (${video.step})${problemOf(video)}` })
    }),
    Output.table(timeline, ["event", "at_ms", "took_ms", "detail"], ""),
    ...(parts.length === 0 ? [] : [Output.table(parts, partColumns, "")]),
    Output.sheet(sums),
    ...(entries.length === 0 ? [] : [Output.table(entries, ["id", "at", "kind", "amount_usd", "ref", "note"], "")])
  ]
  return { document, text: sections.join("\n\n") }
}

/** Also those without a route that can be called; none where the catalog cannot be read. */
const pricedModels = Effect.flatMap(readCatalogOptions, readOffers).pipe(
  Effect.zipWith(Clock.currentTimeMillis, ({ all }, now) => all.map(({ model }) => modelAt(model, now))),
  Effect.orElseSucceed((): ReadonlyArray<Model> => [])
)

const show = command(
  "show",
  "Show a request as a timeline, and why it cost what it did; all of them, newest first, where the id repeats.",
  { id: requestArgument },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* findRequests(id)
    const models = yield* pricedModels
    const names = new Map((yield* (yield* Organizations).list).map(({ id, name }) => [id, name]))
    const shown = yield* Effect.forEach(rows, (row) =>
      Effect.map(explainRequest(OrganizationScope.all, row, models), (explained) =>
        describeRequest(names.get(row.orgId) ?? row.orgId, explained)
      )
    )
    return {
      document: { data: shown.map(({ document }) => document) },
      text: shown.map(({ text }) => text).join(`\n\n${"-".repeat(72)}\n\n`)
    }
  })
)

const exportCsv = (filter: RequestFilter, limit: number) =>
  Stream.runForEach(csvLines(OrganizationScope.all, filter, { limit }), (lines) => Output.print(lines.join("\n")))

const exportJson = (filter: RequestFilter, limit: number) =>
  Stream.concat(
    Stream.succeed('{"data":['),
    pagesOf(OrganizationScope.all, filter, limit).pipe(
      Stream.mapEffect(logRecords),
      Stream.zipWithIndex,
      Stream.map(([records, index]) => {
        const lines = records.map((record) => Output.toJson(record, 0)).join(",\n")
        return index === 0 ? lines : `,${lines}`
      })
    )
  ).pipe(Stream.concat(Stream.succeed("]}")), Stream.runForEach(Output.print))

// Where the terminal is narrow, columns go from the right.
const columns = [
  "at",
  "status",
  "code",
  "org",
  "model",
  "charge_usd",
  "total_ms",
  "tokens",
  "route",
  "tries",
  "request_id"
]

const toListed = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
  const organizations = yield* Effect.flatMap(Organizations, ({ list }) => list)
  const names = new Map<string, string>(organizations.map(({ id, name }) => [id, name]))
  return (yield* logRecords(rows)).map(
    (record): Output.Fields => ({
      ...record,
      org: names.get(record.org) ?? record.org,
      tries: record.attempts.length,
      tokens: record.usage?.total_tokens ?? 0
    })
  )
})

const printDocuments = (rows: ReadonlyArray<RequestRow>) =>
  Effect.flatMap(logRecords(rows), (records) =>
    Effect.forEach(records, (record) => Output.print(Output.toJson(record, 0)), { discard: true })
  )

const most = 10_000
// A row follows the end of its request, and clocks differ.
const slackMillis = 60_000

/** The heading comes again where other columns fit. */
const continuousTable = () => {
  let headings: string | undefined
  return Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
    const { heading, lines, remark } = Output.layOut(yield* toListed(rows), columns)
    const shown = heading.replace(/ +/g, " ")
    const head = shown === headings ? [] : [...(remark === undefined ? [] : [remark]), heading]
    headings = shown
    yield* Output.print([...head, ...lines].join("\n"))
  })
}

const follow = Effect.fnUntraced(function* (json: boolean, query: RequestQuery, shown: ReadonlyArray<RequestRow>) {
  const print = json ? printDocuments : continuousTable()
  const log = yield* RequestLog
  const { requestTimeout, streamTimeout } = yield* settings
  const longest = Duration.toMillis(Duration.sum(requestTimeout, streamTimeout)) + 2 * slackMillis
  let seen = new Set(shown.map(({ id }) => id))
  yield* print(shown.toReversed())
  const showNew = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const since = Math.max(query.since ?? 0, now - longest)
    const recent = yield* log.list(OrganizationScope.all, {
      ...query,
      since,
      endedSince: now - slackMillis,
      limit: most
    })
    const fresh = recent.filter(({ id }) => !seen.has(id)).toReversed()
    seen = new Set([...seen, ...fresh.map(({ id }) => id)].slice(-2 * most))
    if (fresh.length === 0) return
    yield* print(fresh)
  })
  yield* Effect.repeat(showNew, Schedule.spaced("1 second"))
})

const parseStatus = (text: string): StatusFilter | undefined => {
  if (text === "ok" || text === "4xx" || text === "5xx") return text
  return Inputs.whole(100, 599)(text)
}

export const requests = Command.make(
  "requests",
  {
    org: Inputs.orgFilter,
    key: Inputs.optional(Inputs.text("key"), "a key's id; default: all"),
    model: Inputs.optional(Inputs.text("model"), "a model's id; default: all"),
    status: Inputs.optional(
      Inputs.option("status", "an HTTP status, 4xx, 5xx or ok", parseStatus),
      "the status the client got: one such as 429, or 4xx, 5xx or ok; default: all"
    ),
    address: Inputs.optional(
      Inputs.option("address", rangeForms, parseRange),
      `the client's: ${rangeForms}; default: all`
    ),
    user: Inputs.optional(Inputs.text("user"), "the end user that requests name; default: all"),
    tag: Inputs.optional(Inputs.text("tag"), "the tag that requests have; default: all"),
    ...Inputs.period,
    limit: Inputs.optionalLimit(
      2_147_483_647,
      "how many rows; default: 100, with --csv or --json all, with --follow 100 to begin with"
    ),
    csv: Inputs.csv,
    follow: Inputs.flag("follow", "go on with new rows as they come, oldest first; with --json one document a line"),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ csv, follow: isFollowing, json, key, limit, org, since, until, ...filters }) {
    const period = { since, until }
    if (csv && (json || isFollowing))
      return yield* new CommandFailed({ message: "--csv goes with neither --json nor --follow." })
    if (isFollowing && period.until !== undefined)
      return yield* new CommandFailed({ message: "--follow has no end: it does not go with --until." })
    const query = {
      ...filters,
      ...(yield* Inputs.readPeriod(period)),
      org: yield* filterOf(org),
      key: key === undefined ? undefined : KeyId.make(key)
    }
    if (csv) return yield* exportCsv(query, limit ?? Infinity)
    if (json && !isFollowing) return yield* exportJson(query, limit ?? Infinity)
    const rows = Chunk.toReadonlyArray(
      yield* Stream.runCollect(pagesOf(OrganizationScope.all, query, Math.min(limit ?? 100, most)))
    ).flat()
    if (rows.length === 0 && key !== undefined)
      yield* Effect.flatMap(ApiKeys, ({ find }) => find(OrganizationScope.all, key))
    if (!isFollowing) return yield* Output.print(Output.table(yield* toListed(rows), columns, "There are no requests."))
    return yield* follow(json, { ...query, limit: most }, rows)
  })
).pipe(
  Command.withDescription("The request log, newest first."),
  Command.provide(operator),
  Command.withSubcommands([show])
)

export const usage = command(
  "usage",
  "Spend, cost, margin and tokens, by the request log.",
  {
    org: Inputs.orgFilter,
    by: Inputs.optional(
      Inputs.option("by", groupingForms, parseGroupings),
      `${groupingForms}; days are UTC; default: model`
    ),
    csv: Inputs.csv,
    ...Inputs.period
  },
  Effect.fnUntraced(function* (given) {
    const groupings: Groupings = given.by ?? ["model"]
    const [by, thenBy] = groupings
    const query = { ...(yield* Inputs.readPeriod(given)), org: yield* filterOf(given.org) }
    const { report } = yield* Usage
    const { rows, totals: all } = yield* report(OrganizationScope.all, { ...query, by, thenBy })
    const records = rows.map((row) => usageRecord(groupings, row))
    const totals = usageSums(all)
    const shown = usageColumns(groupings)
    const text = given.csv
      ? usageCsv(groupings, rows).join("\n")
      : Output.table(
          rows.length === 0 ? [] : [...records, { ...totals, [by]: "total" }],
          shown,
          "There were no requests."
        )
    return { document: { data: records, totals }, text }
  })
)
