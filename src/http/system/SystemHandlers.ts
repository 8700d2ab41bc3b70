import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Context, Effect, Option } from "effect"
import { type DatabaseTotals, DatabaseTotalsReader, type OpenTotal } from "../../services/telemetry/DatabaseTotals.ts"
import { json, respond } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { exposition, type Families, gauge, MetricsSource } from "./Prometheus.ts"

export class Readiness extends Context.Tag("gateway/http/Readiness")<
  Readiness,
  {
    /** The reason not to send traffic here. */
    readonly unready: Effect.Effect<string | undefined>
    /** What does not work, although the rest is served. */
    readonly impaired: () => string | undefined
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
      `${help} of the database`,
      values.map((value) => [[[label, value]], totalOf(value)?.count ?? 0])
    ),
    gauge(
      ageName,
      "Age of the oldest of these",
      values.map((value) => [[[label, value]], (totalOf(value)?.oldestMs ?? 0) / 1000])
    )
  ]
}

const databaseFamilies = ({ holds, organizations, videos, webhooks }: DatabaseTotals): Families => [
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
    "Deliveries of the database that have failed and are to be tried again",
    webhooks.map(({ count }) => [[], count])
  ),
  gauge(
    "gateway_oldest_failing_webhook_seconds",
    "Age of the oldest of these",
    webhooks.map(({ oldestMs }) => [[], oldestMs / 1000])
  ),
  gauge(
    "gateway_organizations_low",
    "Organizations of the database that have no more than that available",
    organizations.map(({ count, usd }) => [[["usd", String(usd)]], count])
  )
]

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
            const isReady = (yield* readiness.unready) === undefined
            const text = yield* exposition([
              ...(yield* metrics.families),
              // Only the process that answers knows of these.
              gauge("gateway_ready", "1 while /readyz answers 200", [[[], isReady ? 1 : 0]]),
              ...Option.match(yield* totals.read, { onNone: () => [], onSome: databaseFamilies })
            ])
            return HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
          })
        )
    })
  )
