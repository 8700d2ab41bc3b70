import { HttpApiBuilder, OpenApi } from "@effect/platform"
import { Effect, Layer } from "effect"
import { jsonText, respond } from "../Answer.ts"
import { AdminApi } from "../admin/AdminApi.ts"
import { AccessLayer, AdminOptions } from "../admin/Authentication.ts"
import { OrganizationsHandlers } from "../admin/organizations/Handlers.ts"
import { RequestsHandlers } from "../admin/requests/Handlers.ts"
import { SessionHandlers } from "../admin/session/Handlers.ts"
import { requireLoopback } from "../system/Loopback.ts"

const document = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const { consolePublic } = yield* AdminOptions
    const text = yield* Effect.cached(Effect.sync(() => JSON.stringify(OpenApi.fromApi(AdminApi))))
    yield* router.get(
      "/admin/v1/openapi.json",
      Effect.zipRight(
        requireLoopback(consolePublic),
        Effect.map(text, (document) => respond(jsonText(200, document)))
      )
    )
  })
)

export const AdminRoutes = (options: typeof AdminOptions.Service) =>
  Layer.mergeAll(document, SessionHandlers, OrganizationsHandlers, RequestsHandlers).pipe(
    Layer.provide(AccessLayer),
    Layer.provide(Layer.succeed(AdminOptions, options))
  )
