import { Args } from "@effect/cli"
import { Effect } from "effect"
import type { Model } from "../../domain/Model.ts"
import { toUsdText } from "../../domain/Money.ts"
import { Organizations } from "../../services/access/Organizations.ts"
import { entryRecord } from "../../services/admin/EntryRecord.ts"
import { readOffers } from "../../services/catalog/Catalog.ts"
import { type HoldRow, LedgerAdmin } from "../../services/ledger/LedgerAdmin.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { VideoAdmin } from "../../services/videos/VideoAdmin.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { command } from "../Commands.ts"
import { readCatalogOptions } from "../Connection.ts"
import * as Output from "../Output.ts"
import { recordOf as videoRecord } from "../Videos.ts"
import { explainPrice, type Recorded } from "./Price.ts"
import { recordOf } from "./Record.ts"

export const requestArgument = Args.text({ name: "REQUEST_ID" }).pipe(
  Args.withDescription("the x-request-id of an answer, or the id of a row of gateway requests --json")
)

const mostShown = 100

export const findRequests = Effect.fnUntraced(function* (id: string) {
  const { list } = yield* RequestLog
  const rows = yield* list({ id, limit: mostShown })
  return rows.length === 0 ? yield* new CommandFailed({ message: `There is no request ${id} in the log.` }) : rows
})

const readMoney = Effect.fnUntraced(function* (hold: string | null) {
  if (hold === null) return { money: undefined, video: undefined }
  const ledger = yield* LedgerAdmin
  const videos = yield* VideoAdmin
  return yield* Effect.all({ money: ledger.hold(hold), video: videos.findByHold(hold) })
})

const told = (...parts: ReadonlyArray<string | number | null | undefined>) =>
  parts.filter((part) => part !== null && part !== undefined && part !== "").join(" ")

const settlementOf = ({ charged, closedAt, state }: HoldRow, since: (at: Date) => number) => {
  if (closedAt === null) return []
  const detail = charged === null ? "nothing charged" : `${toUsdText(charged)} USD charged`
  return [{ event: state, at_ms: since(closedAt), detail }]
}

/** Attempts follow each other, and the log has only how long each took. */
const timeline = ({ money, row, video }: Recorded): ReadonlyArray<Output.Fields> => {
  const since = (at: Date) => Math.max(0, at.getTime() - row.at.getTime())
  const hold = money?.hold
  const attempts = video?.attempts ?? row.attempts
  const settled = hold === undefined ? [] : settlementOf(hold, since)
  return [
    { event: "received", at_ms: 0, detail: told(row.surface, row.model, row.stream ? "stream" : "") },
    ...(hold === undefined
      ? []
      : [{ event: "admitted", at_ms: since(hold.createdAt), detail: `${toUsdText(hold.amount)} USD held` }]),
    ...attempts.map(({ cost, detail, ms, outcome, provider, providerRequestId, route, status }, index) => ({
      event: `attempt ${index + 1}`,
      took_ms: ms,
      detail: told(
        route,
        provider,
        outcome,
        status,
        providerRequestId,
        cost === undefined ? "" : `cost ${toUsdText(cost)} USD`,
        detail
      )
    })),
    ...(row.firstByteMs === null ? [] : [{ event: "first byte", at_ms: row.firstByteMs }]),
    ...(video === undefined ? settled : []),
    { event: "answered", at_ms: row.totalMs, detail: told(row.status, row.code) },
    ...(video?.completedAt ? [{ event: video.status, at_ms: since(video.completedAt), detail: video.errorCode }] : []),
    ...(video === undefined ? [] : settled),
    ...(money?.entries ?? []).flatMap(({ amount, at, kind, note }) =>
      kind === "adjustment"
        ? [{ event: "refunded", at_ms: since(at), detail: told(toUsdText(amount), "USD", note) }]
        : []
    )
  ]
}

const holdRecord = (hold: HoldRow): Output.Fields => ({
  id: hold.id,
  amount_usd: hold.amount,
  state: hold.state,
  charged_usd: hold.charged,
  created_at: hold.createdAt,
  closed_at: hold.closedAt
})

const partColumns = ["unit", "quantity", "rate_usd", "per", "amount_usd"]

const describe = (org: string, recorded: Recorded): Output.Output => {
  const { money, row, video } = recorded
  const events = timeline(recorded)
  const { parts, sums } = explainPrice(recorded)
  const { attempts: _attempts, charge_usd: _charge, cost_usd: _cost, ...request } = recordOf(row)
  const document = {
    ...recordOf(row),
    hold: money === undefined ? null : holdRecord(money.hold),
    timeline: events,
    price: { parts, ...sums },
    entries: (money?.entries ?? []).map(entryRecord),
    video: video === undefined ? null : videoRecord(video)
  }
  const sections = [
    Output.record({ ...request, org, ...(video && { video: `${video.id} ${video.status} (${video.step})` }) }).text,
    Output.table(events, ["event", "at_ms", "took_ms", "detail"], ""),
    ...(parts.length === 0 ? [] : [Output.table(parts, partColumns, "")]),
    Output.record(sums).text,
    ...(money === undefined || money.entries.length === 0
      ? []
      : [Output.table(money.entries.map(entryRecord), ["id", "at", "kind", "amount_usd", "ref", "note"], "")])
  ]
  return { document, text: sections.join("\n\n") }
}

/** Also those without a route that can be called; none where the catalog cannot be read. */
const pricedModels = Effect.flatMap(readCatalogOptions, readOffers).pipe(
  Effect.map(({ all }) => all.map(({ model }) => model)),
  Effect.orElseSucceed((): ReadonlyArray<Model> => [])
)

export const show = command(
  "show",
  "Show a request as a timeline, and why it cost what it did; all of them, newest first, where the id repeats.",
  { id: requestArgument },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* findRequests(id)
    const models = yield* pricedModels
    const names = new Map((yield* (yield* Organizations).list).map(({ id, name }) => [id, name]))
    const shown = yield* Effect.forEach(rows, (row) =>
      Effect.map(readMoney(row.holdId), (found) => {
        const model = models.find((one) => one.id === row.model)
        return describe(names.get(row.orgId) ?? row.orgId, { row, model, ...found })
      })
    )
    return {
      document: { data: shown.map(({ document }) => document) },
      text: shown.map(({ text }) => text).join(`\n\n${"-".repeat(72)}\n\n`)
    }
  })
)
