import { Command } from "@effect/cli"
import { Chunk, Clock, Duration, Effect, Schedule, Stream } from "effect"
import { KeyId } from "../domain/ApiKey.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { parseRange } from "../services/access/AddressRange.ts"
import { ApiKeys } from "../services/access/ApiKeys.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { logRecords, pagesOf } from "../services/admin/requests/Pages.ts"
import type { RequestQuery, StatusFilter } from "../services/telemetry/RequestListing.ts"
import { RequestLog, type RequestRow } from "../services/telemetry/RequestLog.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { filterOf } from "./Commands.ts"
import { operator, settings } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { exportCsv, exportJson } from "./requests/Export.ts"
import { show } from "./requests/Show.ts"

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

const describe = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
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
    const { heading, lines, remark } = Output.layOut(yield* describe(rows), columns)
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
      Inputs.option("address", Inputs.addressForms, parseRange),
      `the client's: ${Inputs.addressForms}; default: all`
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
    if (!isFollowing) return yield* Output.print(Output.table(yield* describe(rows), columns, "There are no requests."))
    return yield* follow(json, { ...query, limit: most }, rows)
  })
).pipe(
  Command.withDescription("The request log, newest first."),
  Command.provide(operator),
  Command.withSubcommands([show])
)
