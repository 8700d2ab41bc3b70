import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Context, Effect, Option } from "effect"
import { type DatabaseTotals, DatabaseTotalsReader, type OpenTotal } from "../../services/telemetry/DatabaseTotals.ts"
import { SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { json, respond } from "../HttpAnswer.ts"
import { exposition, type Families, gauge, MetricsSource } from "./Prometheus.ts"

export class Readiness extends Context.Tag("gateway/http/Readiness")<
  Readiness,
  {
    /** Why the instance is not ready, or undefined if it is ready. */
    readonly unreadyReason: Effect.Effect<string | undefined>
    /** Returns which part of a ready instance does not work, if any. */
    readonly impairedReason: () => string | undefined
  }
>() {}

const openFamilies = (
  [name, help]: readonly [name: string, help: string],
  ageName: string,
  label: string,
  values: ReadonlyArray<string>,
  totals: ReadonlyArray<OpenTotal>
): Families => {
  const totalOf = (value: string) => totals.find((total) => total.label === value)
  return [
    gauge(
      name,
      `${help} in the database`,
      values.map((value) => [[[label, value]], totalOf(value)?.count ?? 0])
    ),
    gauge(
      ageName,
      "Age of the oldest one in seconds",
      values.map((value) => [[[label, value]], (totalOf(value)?.oldestMs ?? 0) / 1000])
    )
  ]
}

export const databaseFamilies = ({ holds, organizations, videos, webhooks }: DatabaseTotals): Families => [
  ...openFamilies(["gateway_holds", "Open holds"], "gateway_oldest_hold_seconds", "owner", ["process", "job"], holds),
  ...openFamilies(
    ["gateway_videos", "Unfinished videos"],
    "gateway_oldest_video_seconds",
    "status",
    ["queued", "in_progress"],
    videos
  ),
  gauge(
    "gateway_webhooks_failing",
    "Failed webhook deliveries that will be retried",
    webhooks.map(({ count }) => [[], count])
  ),
  gauge(
    "gateway_oldest_failing_webhook_seconds",
    "Age of the oldest failed delivery in seconds",
    webhooks.map(({ oldestMs }) => [[], oldestMs / 1000])
  ),
  gauge(
    "gateway_organizations_low",
    "Organizations with at most `usd` USD available",
    organizations.map(({ count, usd }) => [[["usd", String(usd)]], count])
  )
]

export const SystemHandlers = (options: OwnNames & { readonly areMetricsPublic: boolean }) =>
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
          Effect.map(readiness.unreadyReason, (reason) =>
            respond(
              reason === undefined
                ? json(200, { status: "ready", impaired: readiness.impairedReason() })
                : json(503, { status: "unready", reason })
            )
          )
        )
        .handleRaw("metrics", () =>
          Effect.gen(function* () {
            yield* requireLoopback(options.areMetricsPublic, options)
            const isReady = (yield* readiness.unreadyReason) === undefined
            const text = yield* exposition([
              ...(yield* metrics.families),
              // This value is the process's own. The database's totals are the same in every process.
              gauge("gateway_ready", "1 while /readyz returns 200", [[[], isReady ? 1 : 0]]),
              ...Option.match(yield* totals.read, { onNone: () => [], onSome: databaseFamilies })
            ])
            return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
          })
        )
    })
  )
