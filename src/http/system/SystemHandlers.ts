import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Context, Effect } from "effect"
import { DatabaseTotalsReader } from "../../services/telemetry/DatabaseTotals.ts"
import { json, respond } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
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

export const SystemHandlers = (options: OwnNames & { readonly metricsPublic: boolean }) =>
  HttpApiBuilder.group(
    SiteApi,
    "system",
    Effect.fnUntraced(function* (handlers) {
      const readiness = yield* Readiness
      const metrics = yield* MetricsSource
      const totals = yield* DatabaseTotalsReader

      return handlers
        .handleRaw("health", () => Effect.sync(() => respond(json(200, { status: "ok" }))))
        .handleRaw("readiness", () =>
          Effect.map(readiness.unready, (reason) =>
            respond(
              reason === undefined
                ? json(200, { status: "ready", impaired: readiness.impaired() })
                : json(503, { status: "unready", reason })
            )
          )
        )
        .handleRaw("metrics", () =>
          Effect.gen(function* () {
            yield* requireLoopback(options.metricsPublic, options)
            const own = ownFamilies(yield* readiness.unready, yield* totals.read)
            return HttpServerResponse.text(yield* exposition([...(yield* metrics.families), ...own]), {
              contentType: "text/plain; version=0.0.4; charset=utf-8"
            })
          })
        )
    })
  )
