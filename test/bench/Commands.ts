import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Option, Redacted } from "effect"
import { Migrations } from "../../src/database/Migrations.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { Auth } from "../../src/services/access/Auth.ts"
import { BlockList } from "../../src/services/access/BlockList.ts"
import { TokenWindows } from "../../src/services/access/RateLimiter.ts"
import { Audit } from "../../src/services/admin/AuditLog.ts"
import { readKpis } from "../../src/services/admin/Kpis.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { VideoAdmin } from "../../src/services/admin/VideoAdmin.ts"
import { Idempotency } from "../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../src/services/instance/Instance.ts"
import * as ClosingSql from "../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../src/services/ledger/HoldSql.ts"
import * as HoldSweeper from "../../src/services/ledger/HoldSweeper.ts"
import { invariants } from "../../src/services/ledger/Invariants.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { Refunds, refundFailed } from "../../src/services/ledger/Refunds.ts"
import { Fetcher } from "../../src/services/media/Fetcher.ts"
import { PublishedHealth } from "../../src/services/routing/PublishedHealth.ts"
import { productionTimings } from "../../src/services/runtime/Timings.ts"
import { runWith } from "../../src/services/sql/SqlStatement.ts"
import { CustomerUsage } from "../../src/services/telemetry/CustomerUsage.ts"
import { SearchLimit } from "../../src/services/telemetry/RequestListing.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { Usage } from "../../src/services/telemetry/Usage.ts"
import { VideoSql } from "../../src/services/videos/VideoSql.ts"
import { makeVideoViews, refundedVideos } from "../../src/services/videos/VideoViews.ts"
import { Webhooks } from "../../src/services/webhooks/Webhooks.ts"
import * as RefundJournalFake from "../fakes/RefundJournalFake.ts"
import {
  busiest,
  busiestKey,
  days,
  endpointOf,
  former,
  instanceId,
  keyId,
  manyKeyed,
  newcomer,
  organizationOf,
  rareModel,
  rareStatus,
  type Size,
  secretOf
} from "./GrownDatabase.ts"
import { rareTag } from "./GrownTags.ts"
import { statementCommands } from "./StatementCommands.ts"

const all = OrganizationScope.all
const member = OrganizationScope.only(busiest)

/** The services, and beside them none that would look at the database by itself meanwhile. */
export const services = Layer.mergeAll(
  ApiKeys.layer,
  Auth.layer,
  BlockList.layer,
  PublishedHealth.layer,
  Idempotency.layer,
  Migrations.layer,
  RequestLog.layer,
  Usage.layer,
  CustomerUsage.layer,
  VideoAdmin.layer,
  Audit.layer,
  Layer.provide(Webhooks.layer, Layer.mock(Fetcher, {})),
  Layer.provideMerge(Organizations.layer, LedgerAdmin.layer),
  Layer.provide(
    Layer.provide(Ledger.layer, TokenWindows.layer),
    Layer.provide(Refunds.layer, [RefundJournalFake.layer, refundedVideos])
  )
).pipe(
  Layer.provideMerge(
    Layer.succeed(Instance, {
      id: Effect.succeed(instanceId),
      isAdmitting: () => true,
      isBeating: () => true,
      hasPeers: Effect.succeed(false)
    })
  )
)

export interface Command {
  readonly name: string
  readonly run: Effect.Effect<unknown, unknown>
  /** How many rows of growing tables it may read; by default a few for each of the 100 that are listed. */
  readonly mostRows: number
}

const hour = 3_600_000
const page = 100

/** All that endpoints, commands and background work ask the database, of a size that does not grow with it. */
export const commands = Effect.fnUntraced(function* (size: Size) {
  const sql = yield* SqlClient.SqlClient
  const keys = yield* ApiKeys
  const auth = yield* Auth
  const books = yield* LedgerAdmin
  const ledger = yield* Ledger
  const idempotency = yield* Idempotency
  const log = yield* RequestLog
  const organizations = yield* Organizations
  const usage = yield* Usage
  const desk = yield* VideoAdmin
  const clips = makeVideoViews(sql)
  const rows = new VideoSql(sql, productionTimings.videoLease)
  const { pending } = yield* Migrations
  const { list: health } = yield* PublishedHealth
  const { list: blocked } = yield* BlockList
  const customers = yield* CustomerUsage
  const audit = yield* Audit
  const webhooks = yield* Webhooks
  const now = Date.now()
  const month = now - 30 * 24 * hour
  const ordinary = organizationOf(7)

  const [request] = yield* sql<{ readonly requestId: string }>`SELECT request_id FROM request_log LIMIT 1`
  if (request === undefined) return yield* Effect.dieMessage("no requests")
  const [video] = yield* sql<{ readonly id: string; readonly orgId: OrgId }>`
    SELECT id, org_id FROM videos WHERE step = 'over' ORDER BY hold_id LIMIT 1`
  const [open] = yield* sql<{ readonly id: string; readonly orgId: OrgId }>`
    SELECT id, org_id FROM open_holds LIMIT 1`
  const [render] = yield* sql<{ readonly id: string }>`SELECT id FROM videos WHERE next_at IS NOT NULL LIMIT 1`
  const [middleEntry = { id: "" }] = yield* sql<{ readonly id: string }>`
    SELECT id FROM ledger_entries ORDER BY id OFFSET (SELECT count(*) / 2 FROM ledger_entries) LIMIT 1`
  const [oldest] = yield* clips.list(busiest, 1, { order: "asc", after: undefined })
  const [middle] = yield* sql<{ readonly id: string }>`
    SELECT id FROM videos WHERE org_id = ${busiest} AND accepted_at IS NOT NULL
    ORDER BY created_at OFFSET (SELECT count(*) / 2 FROM videos WHERE org_id = ${busiest}) LIMIT 1`
  if (video === undefined || open === undefined || render === undefined || oldest === undefined || middle === undefined)
    return yield* Effect.dieMessage("too few rows")

  const entry = (name: string, run: Effect.Effect<unknown, unknown>, mostRows = 5 * page): Command => ({
    name,
    run,
    mostRows
  })
  // Of the newest or the oldest hour.
  const ofAnHour = (name: string, run: Effect.Effect<unknown, unknown>) =>
    entry(name, run, page + 10 * Math.ceil(size.rows / days / 24))
  const searchLimit = yield* SearchLimit
  /** Reads at most so many rows of its first filter. */
  const search = (name: string, run: Effect.Effect<unknown, unknown>) => entry(name, run, searchLimit + 5 * page)
  /** Ids begin a little after the time that a list ends at. */
  const minuteOfRows = page + 10 * Math.ceil(size.rows / days / 24 / 60)
  const point = (name: string, run: Effect.Effect<unknown, unknown>) => entry(name, run, 10)

  return [
    point("authentication", auth.authenticate(Option.some(Redacted.make(secretOf(1))))),
    point("GET /v1/credits", ledger.balance(busiest)),
    entry("GET /v1/videos", clips.list(busiest, page)),
    entry("GET /v1/videos of a former customer", clips.list(former, page)),
    point("GET /v1/videos of a newcomer", clips.list(newcomer, page)),
    entry("GET /v1/videos after the oldest", clips.list(busiest, page, { order: "desc", after: oldest.id })),
    entry("GET /v1/videos after one in the middle", clips.list(busiest, page, { order: "asc", after: middle.id })),
    point("GET /v1/videos: the cursor", clips.belongsTo(busiest, middle.id)),
    point("DELETE /v1/videos/{id}", clips.delete(video.orgId, video.id)),
    point("GET /v1/videos/{id}", clips.find(video.orgId, video.id)),
    entry(
      "GET /v1/usage of a month",
      customers.sum({ org: ordinary, by: "model", since: month, until: now }),
      size.rows / 10
    ),
    entry(
      "GET /v1/usage of a month by tag",
      customers.sum({ org: ordinary, by: "tag", since: month, until: now }),
      size.rows / 10
    ),
    ...(yield* statementCommands((name, run) => entry(name, run, size.rows / 10))),
    point("GET /v1/usage/requests/{id}", Effect.ignore(customers.find(busiest, request.requestId))),
    point("readiness", pending),
    entry("orgs list", organizations.list),
    point("orgs show", organizations.find(all, busiest)),
    entry("keys list", keys.list(busiest)),
    entry("keys page", keys.page(all, { org: manyKeyed, limit: page })),
    entry("keys page of a former customer", keys.page(all, { org: former, limit: page })),
    entry("webhooks list", webhooks.page(all, { org: former, limit: page })),
    entry("webhooks deliveries", webhooks.deliveries(all, { limit: page })),
    entry("webhooks deliveries --org", webhooks.deliveries(all, { org: busiest, limit: page })),
    entry("webhooks deliveries --org of a former customer", webhooks.deliveries(all, { org: former, limit: page })),
    entry(
      "webhooks deliveries --org, failed",
      webhooks.deliveries(all, { org: busiest, state: "failed", limit: page })
    ),
    entry("webhooks deliveries of a member", webhooks.deliveries(member, { limit: page })),
    entry("webhooks deliveries, failed", webhooks.deliveries(all, { state: "failed", limit: page })),
    entry("webhooks deliveries --endpoint", webhooks.deliveries(all, { endpoint: endpointOf(former), limit: page })),
    point("webhooks deliveries --event", webhooks.deliveries(all, { event: "evt_none", limit: page })),
    entry("audit", audit.list(all, { limit: page })),
    entry("audit --org", audit.list(all, { org: busiest, limit: page })),
    entry("audit --org of a former customer", audit.list(all, { org: former, limit: page })),
    entry("audit --target", audit.list(all, { target: former, limit: page })),
    entry("audit --actor", audit.list(all, { actor: "operator 1", limit: page })),
    point("credits add", books.topUp({ org: busiest, amount: NanoUsd(1n), ref: "again" })),
    point("credits adjust", books.adjust({ org: busiest, amount: NanoUsd(1n), note: "n", force: false })),
    entry("ledger show", books.entries(busiest, { limit: page })),
    entry("ledger show of a former customer", books.entries(former, { limit: page })),
    point("ledger show of a newcomer", books.entries(newcomer, { limit: page })),
    entry("ledger of all", books.page(all, { limit: page })),
    entry("ledger after one in the middle", books.page(all, { limit: page, after: middleEntry.id })),
    entry("ledger --org", books.page(all, { limit: page, org: busiest })),
    entry("ledger of a member", books.page(member, { limit: page })),
    entry("ledger --org of a former customer", books.page(all, { limit: page, org: former })),
    point("ledger --org of a newcomer", books.page(all, { limit: page, org: newcomer })),
    entry("ledger --kind", books.page(all, { limit: page, kind: "top_up" })),
    entry("ledger --org --kind", books.page(all, { limit: page, org: ordinary, kind: "top_up" })),
    entry("ledger --since --until", books.page(all, { limit: page, since: month, until: month + hour })),
    entry("ledger --org --until", books.page(all, { limit: page, org: busiest, until: month })),
    entry(
      "ledger --org --kind --until",
      books.page(all, { limit: page, org: busiest, kind: "adjustment", until: month })
    ),
    entry(
      "ledger --org after one in the middle",
      books.page(all, { limit: page, org: busiest, after: middleEntry.id })
    ),
    point("ledger --hold", books.page(all, { limit: page, hold: open.id })),
    entry("open holds", books.openHolds(all, { limit: page })),
    entry("open holds --org", books.openHolds(all, { limit: page, org: busiest })),
    entry("open holds --older-than", books.openHolds(all, { limit: page, olderThan: hour })),
    entry("open holds after one", books.openHolds(all, { limit: page, after: open.id })),
    entry("providers", health),
    entry("blocklist list", blocked),
    entry("requests", log.list(all, { limit: page })),
    entry("requests --org", log.list(all, { limit: page, org: busiest })),
    entry("requests --org of a former customer", log.list(all, { limit: page, org: former })),
    search("requests --org --code", log.list(all, { limit: page, org: former, code: "upstream_error" })),
    point("requests --org of a newcomer", log.list(all, { limit: page, org: newcomer })),
    entry("requests --key", log.list(all, { limit: page, key: busiestKey })),
    entry("requests --key of a former customer", log.list(all, { limit: page, key: keyId(2) })),
    entry("requests --until 30d", log.list(all, { limit: page, until: month }), page + minuteOfRows),
    entry(
      "requests --org --until 30d",
      log.list(all, { limit: page, org: busiest, until: month }),
      page + minuteOfRows
    ),
    point("requests --id (made)", log.list(all, { limit: page, id: request.requestId })),
    point("requests --id (chosen)", log.list(all, { limit: page, id: "chosen" })),
    search("requests --model (frequent)", log.list(all, { limit: page, model: "chat-1" })),
    search("requests --model (rare)", log.list(all, { limit: page, model: rareModel })),
    entry("requests --status (frequent)", log.list(all, { limit: page, status: 200 })),
    entry("requests --status (rare)", log.list(all, { limit: page, status: rareStatus })),
    entry(
      "requests --since 30d --status (rare)",
      log.list(all, { limit: page, since: now - 720 * hour, status: rareStatus })
    ),
    search("requests --org --status (rare)", log.list(all, { limit: page, org: busiest, status: rareStatus })),
    search("requests --org --model (rare)", log.list(all, { limit: page, org: busiest, model: rareModel })),
    search("requests --key --status (rare)", log.list(all, { limit: page, key: busiestKey, status: rareStatus })),
    search("requests --key --model (rare)", log.list(all, { limit: page, key: busiestKey, model: rareModel })),
    search("requests --model --status (rare)", log.list(all, { limit: page, model: "chat-1", status: rareStatus })),
    entry("requests --tag (frequent)", log.list(all, { limit: page, tag: "team-0" })),
    entry("requests --tag (rare)", log.list(all, { limit: page, tag: rareTag })),
    search("requests --tag --org of a former customer", log.list(all, { limit: page, tag: "team-0", org: former })),
    search("requests --tag --status (rare)", log.list(all, { limit: page, tag: "team-0", status: rareStatus })),
    search("requests --tag (rare) --key", log.list(all, { limit: page, tag: rareTag, key: busiestKey })),
    entry("requests --user", log.list(all, { limit: page, user: "user-1" })),
    search("requests --user --tag --org", log.list(all, { limit: page, user: "user-1", tag: "team-0", org: busiest })),
    ofAnHour("requests: failures of a day", log.failures(all, { since: now - 24 * hour })),
    ofAnHour("dashboard: today and yesterday", readKpis(sql, usage, now)),
    ofAnHour("requests --follow", log.list(all, { limit: 10_000, since: now - 1.2 * hour, endedSince: now - 60_000 })),
    ofAnHour("usage --since 1h", usage.report(all, { by: "model", since: now - hour })),
    entry("videos list", desk.list(all, { limit: page })),
    entry("videos list --org", desk.list(all, { limit: page, org: busiest })),
    entry("videos list --org of a former customer", desk.list(all, { limit: page, org: former })),
    point("videos list --org of a newcomer", desk.list(all, { limit: page, org: newcomer })),
    entry("videos list --model (rare)", desk.list(all, { limit: page, model: rareModel })),
    entry("videos list --status in_progress", desk.list(all, { limit: page, status: "in_progress" })),
    entry("videos list --status failed", desk.list(all, { limit: page, status: "failed" })),
    entry("videos list --status queued", desk.list(all, { limit: page, status: "queued" })),
    entry("videos list --org --status queued", desk.list(all, { limit: page, org: busiest, status: "queued" })),
    entry("videos list --org --model (rare)", desk.list(all, { limit: page, org: busiest, model: rareModel })),
    point("videos show", desk.find(all, video.id)),
    point("videos retry", desk.retry(all, render.id)),
    entry("videos cancel", desk.cancel(all, render.id)),

    entry("worker: claim", rows.claim(16)),
    entry("worker: next due", rows.nextDue([])),
    entry("worker: renew", rows.renew([{ id: render.id, lease: instanceId }])),
    entry(
      "proof of refunds",
      Effect.all(invariants(sql).flatMap(({ check, name }) => (name.startsWith("refunds ") ? [check] : []))),
      size.rows / 20
    ),
    entry("sweep of dead instances", HoldSweeper.findOrphans(sql, productionTimings.deadAfter, 500, [])),
    ofAnHour("removal of an hour of the log", log.prune(Duration.millis(days * 24 * hour - hour))),
    ofAnHour(
      "removal of an hour of idempotency keys",
      idempotency.prune(Duration.hours(25), () => Effect.succeed(true))
    ),
    ofAnHour("removal of an hour of deliveries", webhooks.prune(Duration.hours(days * 24 - 1))),
    ofAnHour("removal of an hour of videos", clips.prune(days * 86_400 - 3_600)),
    entry("references of finished videos", clips.unneededReferences(1_000)),

    point(
      "admission",
      runWith(
        sql,
        HoldSql.place(instanceId, [
          {
            id: "0190a6a5-0000-7000-8000-000000000000",
            org: busiest,
            key: busiestKey,
            amount: NanoUsd(1n),
            rateLimit: 600
          }
        ])
      )
    ),
    entry("settlement", runWith(sql, ClosingSql.settle([{ id: open.id, org: open.orgId, cost: NanoUsd(1n) }]))),
    point("refund", refundFailed(sql, open.id))
  ] satisfies ReadonlyArray<Command>
})
