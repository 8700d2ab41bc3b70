import { Command } from "@effect/cli"
import { Chunk, Clock, Duration, Effect, Schedule, Stream } from "effect"
import { KeyId } from "../domain/ApiKey.ts"
import { type Model, modelAt } from "../domain/Model.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { CommandFailed, UsageError } from "../ExitCode.ts"
import { ApiKeys } from "../services/access/ApiKeys.ts"
import { parseRange, rangeForms } from "../services/access/BlockList.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { csvLines, logRecords, pagesOf, type RequestFilter } from "../services/admin/RequestAdmin.ts"
import { type ExplainedRequest, explainRequest } from "../services/admin/RequestExplanation.ts"
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
import { readSaleStates } from "../services/catalog/Catalog.ts"
import { type RequestQuery, type StatusFilter, statusForms, statusNames } from "../services/telemetry/RequestListing.ts"
import { RequestLog, type RequestRow } from "../services/telemetry/RequestLog.ts"
import { Usage } from "../services/telemetry/Usage.ts"
import { operator, readCatalogOptions, settings } from "./CliServices.ts"
import { command, findOrganizationId } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

export const requestArgument = Inputs.word(
  "REQUEST_ID",
  "the x-request-id of a response, or an id from gateway requests --json"
)

const maxRequests = 100

const findRequests = Effect.fnUntraced(function* (id: string) {
  const { findById } = yield* RequestLog
  const rows = yield* findById(OrganizationScope.all, id, maxRequests)
  return rows.length === 0 ? yield* new CommandFailed({ message: `There is no request ${id} in the log.` }) : rows
})

const describeError = ({ error }: VideoRecord) => (error === null ? "" : `: ${error.code}: ${error.message}`)

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
      ...(video && { video: `${video.id} ${video.status} (${video.step})${describeError(video)}` })
    }),
    Output.table(timeline, ["event", "at_ms", "took_ms", "detail"], ""),
    ...(parts.length === 0 ? [] : [Output.table(parts, partColumns, "")]),
    Output.sheet(sums),
    ...(entries.length === 0 ? [] : [Output.table(entries, ["id", "at", "kind", "amount_usd", "ref", "note"], "")])
  ]
  return { document, text: sections.join("\n\n") }
}

/**
 * Includes models that cannot be called. Returns no models if the catalog cannot be read, so the command still shows the
 * rest.
 */
const readPricedModels = Effect.flatMap(readCatalogOptions, readSaleStates).pipe(
  Effect.zipWith(Clock.currentTimeMillis, ({ all }, now) => all.map(({ model }) => modelAt(model, now))),
  Effect.orElseSucceed((): ReadonlyArray<Model> => [])
)

const show = command(
  "show",
  "Show a request's timeline and how its price was computed. If several requests share the id, show all, newest first.",
  { id: requestArgument },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* findRequests(id)
    const models = yield* readPricedModels
    const names = new Map((yield* (yield* Organizations).list).map(({ id, name }) => [id, name]))
    const outputs = yield* Effect.forEach(rows, (row) =>
      Effect.map(explainRequest(OrganizationScope.all, row, models), (explained) =>
        describeRequest(names.get(row.orgId) ?? row.orgId, explained)
      )
    )
    return {
      document: { data: outputs.map(({ document }) => document) },
      text: outputs.map(({ text }) => text).join(`\n\n${"-".repeat(72)}\n\n`)
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

// The most important columns come first, because a narrow terminal hides columns from the right.
const columns = [
  "at",
  "status",
  "video_status",
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

const hasVideo = (rows: ReadonlyArray<Output.Fields>) => rows.some(({ video_status }) => video_status !== null)

/** Omits the status of videos if no request created one. */
const columnsOf = (hasVideos: boolean) => columns.filter((column) => column !== "video_status" || hasVideos)

const toTableRows = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
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

const maxRows = 10_000
// Rows appear in the log some time after the end of their request, and the clocks of instances differ.
const clockToleranceMillis = 60_000

/** Returns a function that prints rows, below a new heading whenever the visible columns change. */
const makeFollowTable = () => {
  let lastHeading: string | undefined
  let hasVideos = false
  return Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
    const records = yield* toTableRows(rows)
    hasVideos ||= hasVideo(records)
    const { heading, lines, remark } = Output.layOut(records, columnsOf(hasVideos))
    const names = heading.replace(/ +/g, " ")
    const head = names === lastHeading ? [] : [...(remark === undefined ? [] : [remark]), heading]
    lastHeading = names
    yield* Output.print([...head, ...lines].join("\n"))
  })
}

const follow = Effect.fnUntraced(function* (
  json: boolean,
  query: RequestQuery,
  initialRows: ReadonlyArray<RequestRow>
) {
  const print = json ? printDocuments : makeFollowTable()
  const log = yield* RequestLog
  const { requestTimeout, streamTimeout } = yield* settings
  const maxDuration = Duration.toMillis(Duration.sum(requestTimeout, streamTimeout)) + 2 * clockToleranceMillis
  let seen = new Set(initialRows.map(({ id }) => id))
  yield* print(initialRows.toReversed())
  const showNew = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const since = Math.max(query.since ?? 0, now - maxDuration)
    const recent = yield* log.list(OrganizationScope.all, {
      ...query,
      since,
      endedSince: now - clockToleranceMillis,
      limit: maxRows
    })
    const fresh = recent.filter(({ id }) => !seen.has(id)).toReversed()
    seen = new Set([...seen, ...fresh.map(({ id }) => id)].slice(-2 * maxRows))
    if (fresh.length === 0) return
    yield* print(fresh)
  })
  yield* Effect.repeat(showNew, Schedule.spaced("1 second"))
})

const parseStatus = (text: string): StatusFilter | undefined =>
  statusNames.find((name) => name === text) ?? Inputs.integerIn(100, 599)(text)

export const requests = Command.make(
  "requests",
  {
    org: Inputs.orgFilter,
    key: Inputs.optional(Inputs.text("key"), "a key's id; default: all"),
    model: Inputs.optional(Inputs.text("model"), "a model's id; default: all"),
    status: Inputs.optional(
      Inputs.option("status", statusForms, parseStatus),
      "HTTP status of the response: a code such as 429, or 4xx, 5xx, ok, error (5xx or a broken stream) or rejected (4xx except 499); default: all"
    ),
    address: Inputs.optional(
      Inputs.option("address", rangeForms, parseRange),
      `address of the client: ${rangeForms}; default: all`
    ),
    user: Inputs.optional(Inputs.text("user"), "end user named in the request; default: all"),
    tag: Inputs.optional(Inputs.text("tag"), "tag of the request; default: all"),
    ...Inputs.period,
    limit: Inputs.optionalLimit(
      2_147_483_647,
      "maximum number of rows; default: 100, or all with --csv or --json; --follow starts with the last 100"
    ),
    csv: Inputs.csv,
    follow: Inputs.flag("follow", "keep printing new rows, oldest first; with --json, one JSON object per line"),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ csv, follow: isFollowing, json, key, limit, org, since, until, ...filters }) {
    const period = { since, until }
    if (csv && (json || isFollowing))
      return yield* new UsageError({ message: "--csv cannot be combined with --json or --follow." })
    if (isFollowing && period.until !== undefined)
      return yield* new UsageError({ message: "--follow cannot be combined with --until." })
    const query = {
      ...filters,
      ...(yield* Inputs.readPeriod(period)),
      org: yield* findOrganizationId(org),
      key: key === undefined ? undefined : KeyId.make(key)
    }
    if (csv) return yield* exportCsv(query, limit ?? Infinity)
    if (json && !isFollowing) return yield* exportJson(query, limit ?? Infinity)
    const rows = Chunk.toReadonlyArray(
      yield* Stream.runCollect(pagesOf(OrganizationScope.all, query, Math.min(limit ?? 100, maxRows)))
    ).flat()
    if (rows.length === 0 && key !== undefined)
      yield* Effect.flatMap(ApiKeys, ({ find }) => find(OrganizationScope.all, key))
    if (!isFollowing) {
      const records = yield* toTableRows(rows)
      return yield* Output.print(Output.table(records, columnsOf(hasVideo(records)), "There are no requests."))
    }
    return yield* follow(json, { ...query, limit: maxRows }, rows)
  })
).pipe(
  Command.withDescription("Show the request log, newest first."),
  Command.provide(operator),
  Command.withSubcommands([show])
)

/** Moves a name before the id that it belongs to. */
const namesFirst = ([id, name, ...others]: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (id === undefined || name === undefined) return id === undefined ? [] : [id]
  const isNameOfId = name === "name" || name === `${id}_name`
  return isNameOfId ? [name, id, ...namesFirst(others)] : [id, ...namesFirst([name, ...others])]
}

export const usage = command(
  "usage",
  "Show spend, cost, margin and tokens from the request log.",
  {
    org: Inputs.orgFilter,
    by: Inputs.optional(
      Inputs.option("by", groupingForms, parseGroupings),
      `group by ${groupingForms}; days are in UTC; default: model`
    ),
    csv: Inputs.csv,
    ...Inputs.period
  },
  Effect.fnUntraced(function* (input) {
    const groupings: Groupings = input.by ?? ["model"]
    const [by, thenBy] = groupings
    const query = { ...(yield* Inputs.readPeriod(input)), org: yield* findOrganizationId(input.org) }
    const { report } = yield* Usage
    const { rows, totals: all } = yield* report(OrganizationScope.all, { ...query, by, thenBy })
    const records = rows.map((row) => usageRecord(groupings, row))
    const totals = usageSums(all)
    const [first = by, ...others] = namesFirst(usageColumns(groupings))
    const text = input.csv
      ? usageCsv(groupings, rows).join("\n")
      : Output.table(
          rows.length === 0 ? [] : [...records, { ...totals, [first]: "total" }],
          [first, ...others],
          "There were no requests."
        )
    return { document: { data: records, totals }, text }
  })
)
