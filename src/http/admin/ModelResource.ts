import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { NotFound } from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { discountLossesOf, lossesOf, lossText, modelRecord } from "../../services/admin/CatalogRecord.ts"
import { ModelTest, makeModelTest } from "../../services/admin/ModelTests.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import {
  callableModels,
  catalogRoutesOf,
  listServedRoutes,
  MemberModel,
  ServedModel,
  ServedRoute,
  servedModels
} from "../../services/admin/ServedModels.ts"
import { Catalog, cachePerSnapshot } from "../../services/catalog/Catalog.ts"
import { saleStateAt } from "../../services/catalog/SaleState.ts"
import { body, optionalField, Text } from "../../services/resources/ResourceInput.ts"
import { ProviderRouter } from "../../services/routing/ProviderRouter.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, WriteAccess } from "./AdminAccess.ts"
import { pageOf, singlePage } from "./AdminLists.ts"
import { conflict, invalid, notFound, optionalBody, recordOf } from "./Fields.ts"

export const ModelsAnswer = Schema.Struct({
  sandbox: Schema.Boolean.annotations({ description: "Whether the sandbox serves models without a credential." }),
  losses: Schema.Array(Schema.String).annotations({ description: "A sentence for each price below its cost." }),
  other_routes: Schema.Array(ServedRoute).annotations({
    description: "Routes of models that are not in this instance's catalog."
  }),
  ...pageOf(ServedModel, "Models").fields
}).annotations({ identifier: "Models" })

const MemberModels = pageOf(MemberModel, "MemberModels")

const reference = Schema.Struct({
  id: Schema.String.annotations({ description: "A model's id. Encode a slash, as in `vendor%2Fmodel`." })
})

const listEndpoint = HttpApiEndpoint.get("list", "/models")
  .addSuccess(ModelsAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List all models with their prices, costs and routes on one page")
  .annotateContext(exposeToMembers(MemberModels))

const showEndpoint = HttpApiEndpoint.get("show", "/models/:id")
  .setPath(reference)
  .addSuccess(ServedModel)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a model with its prices, costs and routes")
  .annotateContext(exposeToMembers(MemberModel))

const testEndpoint = HttpApiEndpoint.post("test", "/models/:id/test")
  .setPath(reference)
  .setPayload(
    optionalBody(
      body({
        route: optionalField("route", Text, "must be a route's id", "The only route to call. The default is all.")
      })
    )
  )
  .addSuccess(ModelTest)
  .middleware(WriteAccess)
  .annotate(
    OpenApi.Summary,
    "Send the smallest request to a chat or image model, at your own cost, and show the answer within 60 seconds"
  )

export const ModelsGroup = HttpApiGroup.make("models")
  .add(listEndpoint)
  .add(showEndpoint)
  .add(testEndpoint)
  .addError(ChangeErrors)

export const ModelsHandlers = HttpApiBuilder.group(
  adminApiOf(ModelsGroup),
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const organizations = yield* Organizations
    const router = yield* ProviderRouter
    const catalogRoutes = cachePerSnapshot(catalog, catalogRoutesOf)
    const states = cachePerSnapshot(catalog, ({ saleStates }, now) => {
      const all = saleStates.map((state) => saleStateAt(state, now))
      return { all, losses: lossesOf(all.map(modelRecord)).map(lossText) }
    })
    const test = yield* makeModelTest

    const readModels = Effect.gen(function* () {
      const routes = yield* listServedRoutes(yield* catalogRoutes)
      return { routes, models: servedModels(catalog.current, routes, yield* Clock.currentTimeMillis) }
    })

    const listAll = Effect.gen(function* () {
      const { models, routes } = yield* readModels
      const { all, losses } = yield* states
      const ids = new Set(models.map(({ id }) => id))
      return {
        sandbox: catalog.current.sandbox,
        losses: [...losses, ...discountLossesOf(all, yield* organizations.discounts).map(lossText)],
        other_routes: routes.filter(({ model }) => !ids.has(model)),
        ...singlePage(models)
      }
    })

    /** The models that members of one organization can call, at its prices. */
    const readMemberModels = (org: string) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { discount_percent } = yield* organizations.find(scope, org)
        return callableModels(catalog.current, discount_percent, yield* Clock.currentTimeMillis)
      }).pipe(Effect.catchTags({ OrganizationNotFound: notFound }))

    const modelsOfActor = Effect.gen(function* () {
      const { org } = (yield* CurrentActor).scope
      return org === undefined ? (yield* readModels).models : yield* readMemberModels(org)
    })

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          if (scope.org === undefined) return yield* listAll
          const { sandbox } = catalog.current
          return { sandbox, losses: [], other_routes: [], ...singlePage(yield* readMemberModels(scope.org)) }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const model = (yield* modelsOfActor).find((one) => one.id === id)
          return model ?? (yield* new NotFound({ message: `There is no model ${id}.` }))
        })
      )
      .handle("test", ({ path: { id }, payload }) =>
        recordOf(test.run(id, payload === null || payload === "" ? undefined : payload.route)).pipe(
          Effect.provideService(Catalog, catalog),
          Effect.provideService(ProviderRouter, router),
          Effect.catchTags({
            ModelUnknown: notFound,
            RecordingUnfinished: conflict(null),
            TestRefused: ({ message, param }) => conflict(param)({ message }),
            TestInvalid: ({ message, param }) => invalid(param)({ message })
          })
        )
      )
  })
)
