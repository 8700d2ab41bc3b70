import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { isLoss, MarginRecord, modelRecord } from "../../services/admin/CatalogRecord.ts"
import * as Operations from "../../services/admin/RouteOperations.ts"
import { RouteRecord, routeRecords } from "../../services/admin/RouteRecord.ts"
import { Catalog, type CatalogSnapshot, perSnapshot } from "../../services/catalog/Catalog.ts"
import { offerAt } from "../../services/catalog/Offer.ts"
import { RouteControl, RouteControls } from "../../services/control/RouteControls.ts"
import { body, field, optionalField, Text } from "../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { RouteHealth } from "../../services/routing/RouteHealth.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import { invalid, noteText, recordOf } from "./Fields.ts"
import { pageOf, wholePage } from "./Page.ts"

export const ServedRoute = Schema.Struct({
  ...RouteRecord.fields,
  surface: Schema.NullOr(Schema.Literal("chat", "image", "video")).annotations({
    description: "Null, as preference and weight, where this instance's catalog does not have the route."
  }),
  preference: Schema.NullOr(Schema.Number),
  weight: Schema.NullOr(Schema.Number),
  off_reason: TextOrNull.annotations({ description: "Why it cannot be called here." }),
  margins: Schema.Array(MarginRecord),
  loss: Schema.Boolean.annotations({ description: "Whether a price is below its cost." })
}).annotations({ identifier: "ServedRoute" })

const RoutesAnswer = Schema.Struct({
  sandbox: Schema.Boolean.annotations({ description: "Whether models without a credential get made-up answers." }),
  ...pageOf(ServedRoute, "Routes").fields
}).annotations({ identifier: "Routes" })

const route = field("route", Text, "must be a route's id", "Such as `gpt-5@openai`.")
const routeBody = body({ route })

const list = HttpApiEndpoint.get("list", "/routes")
  .addSuccess(RoutesAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Each route: circuit, last error, price and cost; those that are off too; whole")

const disable = HttpApiEndpoint.post("disable", "/routes/disable")
  .setPayload(body({ route, note: optionalField("note", ...noteText, "Why.") }))
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.disable.summary)

const enable = HttpApiEndpoint.post("enable", "/routes/enable")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)

const reset = HttpApiEndpoint.post("reset", "/routes/reset")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reset.summary)

export const RoutesGroup = HttpApiGroup.make("routes")
  .add(list)
  .add(disable)
  .add(enable)
  .add(reset)
  .addError(ChangeErrors)

type Facts = Omit<typeof ServedRoute.Type, keyof RouteRecord>

const unknownHere: Facts = { surface: null, preference: null, weight: null, off_reason: null, margins: [], loss: false }

/** Those of the sandbox have neither price nor cost of their own. */
const factsOf = ({ offers }: CatalogSnapshot, now: number) =>
  new Map(
    offers.flatMap((offer) => {
      const { id: model, routes, surface } = modelRecord(offerAt(offer, now))
      const callable = (offer.callable?.routes ?? []).map(
        ({ id, preference, provider: { name: provider }, weight }) => {
          const facts: Facts = { ...unknownHere, surface, preference, weight }
          return [id, { known: { id, model, provider }, facts }] as const
        }
      )
      const ofFile = routes.map(({ blocked, id, margins, preference, provider, weight }) => {
        const facts: Facts = { surface, preference, weight, off_reason: blocked, margins, loss: margins.some(isLoss) }
        return [id, { known: { id, model, provider }, facts }] as const
      })
      return [...callable, ...ofFile]
    })
  )

export const RoutesHandlers = HttpApiBuilder.group(
  adminApiOf(RoutesGroup),
  "routes",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const health = yield* RouteHealth
    const controls = yield* RouteControls
    const facts = perSnapshot(catalog, factsOf)
    const inCatalog = Effect.sync(() => Operations.catalogRoutes(catalog.current))
    const unknown = { RouteNotFound: invalid("route") }

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { sandbox } = catalog.current
          const routes = yield* facts
          const known = [...routes.values()].map((route) => route.known)
          const records = routeRecords({ known, health: yield* health.list, disabled: yield* controls.disabled })
          const served = records.map((record) => ({ ...record, ...(routes.get(record.id)?.facts ?? unknownHere) }))
          return { sandbox, ...wholePage(served) }
        })
      )
      .handle("disable", ({ payload: { note, route } }) =>
        recordOf(Operations.disable.run(route, note, inCatalog)).pipe(Effect.catchTags(unknown))
      )
      .handle("enable", ({ payload: { route } }) =>
        recordOf(Operations.enable.run(route, inCatalog)).pipe(Effect.catchTags(unknown))
      )
      .handle("reset", ({ payload: { route } }) =>
        recordOf(Operations.reset.run(route, inCatalog)).pipe(Effect.catchTags(unknown))
      )
  })
)
