import { Clock, Effect } from "effect"
import { type Model, modelAt } from "../../domain/Model.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { type ExplainedRequest, explainRequest } from "../../services/admin/requests/Explanation.ts"
import type { VideoRecord } from "../../services/admin/VideoRecord.ts"
import { readOffers } from "../../services/catalog/Catalog.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { command } from "../Commands.ts"
import { readCatalogOptions } from "../Connection.ts"
import * as Inputs from "../Inputs.ts"
import * as Output from "../Output.ts"

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

const describe = (org: string, document: ExplainedRequest): Output.Output => {
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

export const show = command(
  "show",
  "Show a request as a timeline, and why it cost what it did; all of them, newest first, where the id repeats.",
  { id: requestArgument },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* findRequests(id)
    const models = yield* pricedModels
    const names = new Map((yield* (yield* Organizations).list).map(({ id, name }) => [id, name]))
    const shown = yield* Effect.forEach(rows, (row) =>
      Effect.map(explainRequest(OrganizationScope.all, row, models), (explained) =>
        describe(names.get(row.orgId) ?? row.orgId, explained)
      )
    )
    return {
      document: { data: shown.map(({ document }) => document) },
      text: shown.map(({ text }) => text).join(`\n\n${"-".repeat(72)}\n\n`)
    }
  })
)
