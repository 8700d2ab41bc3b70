import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Context, Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listed } from "../../services/catalog/Surfaces.ts"
import { DatabaseTotalsReader } from "../../services/telemetry/DatabaseTotals.ts"
import { json, jsonText, respond } from "../Answer.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { openApiDocument } from "../openapi/OpenApi.ts"
import { ownFamilies } from "./OwnFamilies.ts"
import { exposition, MetricsSource } from "./Prometheus.ts"

export class Readiness extends Context.Tag("gateway/http/Readiness")<
  Readiness,
  {
    /** The reason not to send traffic here. */
    readonly unready: Effect.Effect<string | undefined>
    /** What does not work, although the rest is served. */
    readonly impaired: () => string | undefined
  }
>() {}

export const SystemRoutes = (options: OwnNames & { readonly metricsPublic: boolean }) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const readiness = yield* Readiness
      const metrics = yield* MetricsSource
      const totals = yield* DatabaseTotalsReader
      const openApi = perSnapshot(yield* Catalog, ({ models }) =>
        JSON.stringify(openApiDocument(models, listed, `${options.publicUrl}/v1`))
      )

      yield* router.get(
        "/healthz",
        Effect.sync(() => respond(json(200, { status: "ok" })))
      )
      yield* router.get(
        "/readyz",
        Effect.map(readiness.unready, (reason) =>
          respond(
            reason === undefined
              ? json(200, { status: "ready", impaired: readiness.impaired() })
              : json(503, { status: "unready", reason })
          )
        )
      )
      yield* router.get(
        "/metrics",
        Effect.gen(function* () {
          yield* requireLoopback(options.metricsPublic, options)
          const own = ownFamilies(yield* readiness.unready, yield* totals.read)
          return HttpServerResponse.text(yield* exposition([...(yield* metrics.families), ...own]), {
            contentType: "text/plain; version=0.0.4; charset=utf-8"
          })
        })
      )
      // The router would answer HEAD with the route of GET.
      yield* router.head("/v1/*", new UnknownEndpoint())
      yield* router.get(
        "/v1/openapi.json",
        Effect.map(openApi, (text) => respond(jsonText(200, text)))
      )
    })
  )
