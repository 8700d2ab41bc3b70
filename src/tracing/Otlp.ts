import { randomUUID } from "node:crypto"
import { layerJson, layerProtobuf, OtlpSerialization } from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { ConfigProvider, Context, Effect, Fiber, Layer, Option, Predicate, Record, Redacted } from "effect"
import { makeAgent } from "../node/Outgoing.ts"
import { errorCode } from "../services/runtime/System.ts"
import { type SpanSource, Tracing } from "../services/tracing/Tracing.ts"

interface OtlpSettings {
  readonly otlpHeaders: Redacted.Redacted<Readonly<Record<string, string>>> | undefined
  readonly otlpProtocol: "http/protobuf" | "http/json"
  /** Overrides `service.name` in `otelResourceAttributes`. */
  readonly otelServiceName: string | undefined
  readonly otelResourceAttributes: Readonly<Record<string, string>>
  readonly tracesSampler: string
  readonly tracesSamplerArg: number
}

const batchSize = 512
/** The maximum number of concurrent calls, which limits the memory for batches if the collector is slow. */
const maxCalls = 16
const connectTimeoutMillis = 10_000

const reasonOf = (error: HttpClientError.HttpClientError): string =>
  error._tag === "ResponseError"
    ? `status ${error.response.status}`
    : (error.description ?? errorCode(error.cause) ?? error.reason)

/** Returns a client for the collector at `url`. It logs one warning per outage. */
const makeClient = Effect.fnUntraced(function* ({ origin, pathname, searchParams }: URL) {
  const agent = yield* makeAgent({ connectTimeoutMillis, connections: maxCalls })
  const calls = yield* Effect.makeSemaphore(maxCalls)
  let isFailing = false

  const report = (error?: HttpClientError.HttpClientError) =>
    Effect.suspend(() => {
      if (isFailing === (error !== undefined)) return Effect.void
      isFailing = !isFailing
      return error === undefined
        ? Effect.logInfo(`Traces are sent to ${origin}${pathname} again`)
        : Effect.logWarning(`Traces cannot be sent to ${origin}${pathname}: ${reasonOf(error)}`)
    })

  return NodeHttpClient.makeUndici(agent).pipe(
    HttpClient.mapRequest(HttpClientRequest.setUrlParams(searchParams)),
    HttpClient.transform((call, request) => {
      const fail = (reason: "Transport" | "Encode", description: string) =>
        new HttpClientError.RequestError({ request, reason, description })
      return call.pipe(
        // Reads the body, because the connection is not reused before that.
        Effect.tap(({ text }) => text),
        Effect.flatMap(HttpClientResponse.filterStatusOk),
        Effect.timeoutFail({ duration: "10 seconds", onTimeout: () => fail("Transport", "no answer in 10 seconds") }),
        calls.withPermitsIfAvailable(1),
        // Replaces a 429, because the tracer would wait for `Retry-After` with every batch in memory.
        Effect.catchIf(
          (error) => error._tag === "ResponseError" && error.response.status === 429,
          () => fail("Encode", "status 429")
        ),
        // Drops the batch: the tracer does not retry an encoding failure.
        Effect.flatMap(
          Option.match({ onNone: () => fail("Encode", "too many calls are running"), onSome: Effect.succeed })
        ),
        Effect.tapBoth({ onFailure: report, onSuccess: () => report() }),
        // Runs in a fiber of its own, so a shutdown does not lose the batch that is being sent.
        Effect.interruptible,
        Effect.fork,
        Effect.flatMap(Fiber.join),
        Effect.uninterruptible
      )
    })
  )
})

/** `@effect/opentelemetry` 0.64 adds these attributes to every failed span, even if it was not interrupted. */
const wrongLabels: ReadonlySet<unknown> = new Set(["span.label", "status.interrupted"])

const removeWrongLabels = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value
      .filter((item) => !Predicate.hasProperty(item, "key") || !wrongLabels.has(item.key))
      .map(removeWrongLabels)
  }
  return Predicate.isReadonlyRecord(value) ? Record.map(value, removeWrongLabels) : value
}

const serialization = (protocol: OtlpSettings["otlpProtocol"]) =>
  Layer.map(protocol === "http/json" ? layerJson : layerProtobuf, (context) => {
    const encoder = Context.get(context, OtlpSerialization)
    return Context.make(OtlpSerialization, { ...encoder, traces: (data) => encoder.traces(removeWrongLabels(data)) })
  })

export const makeSampler =
  (name: string, ratio: number): SpanSource["isSampled"] =>
  (parent) => {
    if (parent !== undefined && name.startsWith("parentbased_")) return parent.sampled
    if (!name.endsWith("traceidratio")) return name.endsWith("always_on")
    // Samples by the id's last 56 bits, which are random, so all programs of a trace decide the same.
    const random = parent === undefined ? Math.random() : Number.parseInt(parent.traceId.slice(-14), 16) / 16 ** 14
    return random >= 1 - ratio
  }

export const layer = (url: string, settings: OtlpSettings) =>
  Layer.scoped(
    Tracing,
    Effect.gen(function* () {
      const { otelResourceAttributes: attributes, otelServiceName, otlpHeaders } = settings
      const clock = yield* Effect.clock
      const endpoint = new URL(url)
      const tracer = yield* OtlpTracer.make({
        // Omits the query, which may contain a credential, because the tracer logs this URL.
        url: endpoint.origin + endpoint.pathname,
        headers: otlpHeaders && Redacted.value(otlpHeaders),
        resource: {
          serviceName: otelServiceName ?? attributes["service.name"] ?? "generation-gateway",
          attributes: { "service.instance.id": randomUUID(), ...Record.remove(attributes, "service.name") }
        },
        exportInterval: "1 second",
        maxBatchSize: batchSize
      }).pipe(Effect.provideServiceEffect(HttpClient.HttpClient, makeClient(endpoint)))
      const isSampled = makeSampler(settings.tracesSampler, settings.tracesSamplerArg)
      return { source: { tracer, now: () => clock.unsafeCurrentTimeNanos(), isSampled } }
    }).pipe(
      // Hides OpenTelemetry's variables from the tracer, which would read them again.
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map()))
    )
  ).pipe(Layer.provide(serialization(settings.otlpProtocol)))
