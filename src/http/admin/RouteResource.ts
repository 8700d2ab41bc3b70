import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { BlockedRange, BlockList, isTooWide } from "../../services/access/BlockList.ts"
import { discountAlertReader } from "../../services/admin/Alerts.ts"
import {
  awaitReload,
  discountLossesOf,
  lossesOf,
  lossText,
  ModelRecord,
  modelRecord,
  ReloadRecord,
  requestReload
} from "../../services/admin/CatalogRecord.ts"
import * as Operations from "../../services/admin/ControlOperations.ts"
import { Dashboard } from "../../services/admin/Dashboard.ts"
import { DashboardRecord } from "../../services/admin/DashboardRecord.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { catalogRoutesOf, listServedRoutes, ServedRoute } from "../../services/admin/ServedModels.ts"
import { Catalog, cachePerSnapshot } from "../../services/catalog/Catalog.ts"
import { saleStateAt } from "../../services/catalog/SaleState.ts"
import { RouteControl } from "../../services/control/RouteControls.ts"
import { InstanceRecord, Instances } from "../../services/instance/RunningGateway.ts"
import { body, field, optionalField, Text } from "../../services/resources/ResourceInput.ts"
import { adminApiOf, ChangeErrors, ReadAccess, ReadErrors, WriteAccess } from "./AdminAccess.ts"
import { pageOf, singlePage } from "./AdminLists.ts"
import { addressRange, invalid, noteText, notFound, recordOf } from "./Fields.ts"

const RoutesAnswer = Schema.Struct({
  sandbox: Schema.Boolean.annotations({ description: "Whether the sandbox serves models without a credential." }),
  ...pageOf(ServedRoute, "Routes").fields
}).annotations({ identifier: "Routes" })

const route = field("route", Text, "must be a route's id", "The route's id, such as `gpt-5@openai`.")
const routeBody = body({ route })

const listEndpoint = HttpApiEndpoint.get("list", "/routes")
  .addSuccess(RoutesAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List all routes with their health, prices and costs on one page, including disabled ones")

const disableEndpoint = HttpApiEndpoint.post("disable", "/routes/disable")
  .setPayload(body({ route, note: optionalField("note", ...noteText, "The reason.") }))
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.disable.summary)

const enableEndpoint = HttpApiEndpoint.post("enable", "/routes/enable")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)

const resetEndpoint = HttpApiEndpoint.post("reset", "/routes/reset")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reset.summary)

export const RoutesGroup = HttpApiGroup.make("routes")
  .add(listEndpoint)
  .add(disableEndpoint)
  .add(enableEndpoint)
  .add(resetEndpoint)
  .addError(ChangeErrors)

export const RoutesHandlers = HttpApiBuilder.group(
  adminApiOf(RoutesGroup),
  "routes",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const routes = cachePerSnapshot(catalog, catalogRoutesOf)
    const readRoutes = Effect.sync(() => Operations.catalogRoutes(catalog.current))
    const refusals = { RouteNotFound: invalid("route") }

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { sandbox } = catalog.current
          return { sandbox, ...singlePage(yield* listServedRoutes(yield* routes)) }
        })
      )
      .handle("disable", ({ payload: { note, route } }) =>
        recordOf(Operations.disable.run(route, note, readRoutes)).pipe(Effect.catchTags(refusals))
      )
      .handle("enable", ({ payload: { route } }) =>
        recordOf(Operations.enable.run(route, readRoutes)).pipe(Effect.catchTags(refusals))
      )
      .handle("reset", ({ payload: { route } }) =>
        recordOf(Operations.reset.run(route, readRoutes)).pipe(Effect.catchTags(refusals))
      )
  })
)

const readEndpoint = HttpApiEndpoint.get("read", "/now")
  .addSuccess(DashboardRecord)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show current activity and alerts")

export const DashboardGroup = HttpApiGroup.make("now").add(readEndpoint).addError(ReadErrors)

export const DashboardHandlers = HttpApiBuilder.group(
  adminApiOf(DashboardGroup),
  "now",
  Effect.fnUntraced(function* (handlers) {
    const { read } = yield* Dashboard
    const readDiscountAlerts = yield* discountAlertReader
    return handlers.handle("read", () =>
      Effect.gen(function* () {
        const record = yield* read
        const alerts = yield* readDiscountAlerts(yield* Clock.currentTimeMillis)
        return { ...record, attention: [...record.attention, ...alerts] }
      })
    )
  })
)

const listInstancesEndpoint = HttpApiEndpoint.get("list", "/instances")
  .addSuccess(pageOf(InstanceRecord, "Instances"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List running processes and those that ended within a day, newest first, on one page")

export const InstancesGroup = HttpApiGroup.make("instances").add(listInstancesEndpoint).addError(ReadErrors)

export const InstancesHandlers = HttpApiBuilder.group(adminApiOf(InstancesGroup), "instances", (handlers) =>
  Effect.map(Instances, ({ list }) => handlers.handle("list", () => Effect.map(list, singlePage)))
)

const CatalogAnswer = Schema.Struct({
  fingerprint: Schema.String.annotations({ description: "The fingerprint of the catalog file, as in `/instances`." }),
  sandbox: Schema.Boolean.annotations({ description: "Whether the sandbox serves models without a credential." }),
  losses: Schema.Array(Schema.String).annotations({ description: "A sentence for each price below its cost." }),
  ...pageOf(ModelRecord, "Catalog").fields
}).annotations({ identifier: "Catalog" })

export const ReloadAnswer = pageOf(ReloadRecord, "Reloads")

const showEndpoint = HttpApiEndpoint.get("show", "/catalog")
  .addSuccess(CatalogAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show this instance's catalog with prices, margins, and reasons for unavailable models")

const reloadEndpoint = HttpApiEndpoint.post("reload", "/catalog/reload")
  .addSuccess(ReloadAnswer)
  .middleware(WriteAccess)
  .annotate(
    OpenApi.Summary,
    "Reload the catalog and credentials on every instance, and return each result within 10 seconds"
  )

export const CatalogGroup = HttpApiGroup.make("catalog").add(showEndpoint).add(reloadEndpoint).addError(ChangeErrors)

export const CatalogHandlers = HttpApiBuilder.group(
  adminApiOf(CatalogGroup),
  "catalog",
  Effect.fnUntraced(function* (handlers) {
    const organizations = yield* Organizations
    const prepare = cachePerSnapshot(yield* Catalog, ({ fingerprint, saleStates, sandbox }, now) => {
      const states = saleStates.map((state) => saleStateAt(state, now))
      const models = states.map(modelRecord)
      return { states, answer: { fingerprint, sandbox, losses: lossesOf(models).map(lossText), ...singlePage(models) } }
    })
    const show = Effect.gen(function* () {
      const { answer, states } = yield* prepare
      const losses = discountLossesOf(states, yield* organizations.discounts).map(lossText)
      return { ...answer, losses: [...answer.losses, ...losses] }
    })
    return handlers
      .handle("show", () => show)
      .handle("reload", () =>
        recordOf(requestReload).pipe(
          Effect.flatMap(({ generation }) => awaitReload(generation)),
          Effect.map(singlePage)
        )
      )
  })
)

const range = { range: field("range", ...addressRange, "An address or a range.") }

const listBlockedEndpoint = HttpApiEndpoint.get("list", "/blocklist")
  .addSuccess(pageOf(BlockedRange, "BlockedRanges"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List all blocked addresses on one page")

const addEndpoint = HttpApiEndpoint.post("add", "/blocklist")
  .setPayload(body(range))
  .addSuccess(BlockedRange, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.block.summary)

const removeEndpoint = HttpApiEndpoint.del("remove", "/blocklist")
  .setUrlParams(Schema.Struct(range))
  .addSuccess(BlockedRange)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.unblock.summary)

export const BlockListGroup = HttpApiGroup.make("blocklist")
  .add(listBlockedEndpoint)
  .add(addEndpoint)
  .add(removeEndpoint)
  .addError(ChangeErrors)

export const BlockListHandlers = HttpApiBuilder.group(
  adminApiOf(BlockListGroup),
  "blocklist",
  Effect.fnUntraced(function* (handlers) {
    const { list } = yield* BlockList
    return handlers
      .handle("list", () => Effect.map(list, singlePage))
      .handle("add", ({ payload: { range } }) =>
        Effect.gen(function* () {
          if (!isTooWide(range)) return yield* recordOf(Operations.block.run(range))
          const message = `${range} contains the gateway's own addresses or is very large. To block it, use gateway blocklist add --force.`
          return yield* new InvalidRequest({ message, param: "range" })
        })
      )
      .handle("remove", ({ urlParams: { range } }) =>
        recordOf(Operations.unblock.run(range)).pipe(Effect.catchTags({ RangeNotBlocked: notFound }))
      )
  })
)
