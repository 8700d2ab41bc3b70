import { randomUUID } from "node:crypto"
import { layerJson, layerProtobuf, OtlpSerialization } from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { NodeHttpClient } from "@effect/platform-node"
import { ConfigProvider, Context, Effect, Fiber, Layer, Option, Predicate, Record, Redacted } from "effect"
import { makeAgent } from "../node/Outgoing.ts"
import { errorCode } from "../services/runtime/System.ts"
import { type SpanSource, Tracing } from "../services/tracing/Tracing.ts"

/** The settings of traces. */
interface OtlpSettings {
  readonly otlpHeaders: Redacted.Redacted<Readonly<Record<string, string>>> | undefined
  readonly otlpProtocol: "http/protobuf" | "http/json"
  /** Overrides the `service.name` of the attributes. */
  readonly otelServiceName: string | undefined
  readonly otelResourceAttributes: Readonly<Record<string, string>>
  readonly tracesSampler: string
  readonly tracesSamplerArg: number
}

const batchSize = 512
/** Calls at once, which bounds the memory that a slow collector costs. */
const maxCalls = 16
const connectTimeoutMillis = 10_000

const reasonOf = (error: HttpClientError.HttpClientError): string =>
  error._tag === "ResponseError"
    ? `status ${error.response.status}`
    : (error.description ?? errorCode(error.cause) ?? error.reason)

/** Calls the collector at `url`. Logs one warning for an outage. */
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
        // An answer that is not read keeps its connection.
        Effect.tap(({ text }) => text),
        Effect.flatMap(HttpClientResponse.filterStatusOk),
        Effect.timeoutFail({ duration: "10 seconds", onTimeout: () => fail("Transport", "no answer in 10 seconds") }),
        calls.withPermitsIfAvailable(1),
        // The tracer would wait as long as a 429 says, with every batch in memory.
        Effect.catchIf(
          (error) => error._tag === "ResponseError" && error.response.status === 429,
          () => fail("Encode", "status 429")
        ),
        // The tracer never repeats a failure to encode.
        Effect.flatMap(Option.match({ onNone: () => fail("Encode", "too many calls wait"), onSome: Effect.succeed })),
        Effect.tapBoth({ onFailure: report, onSuccess: () => report() }),
        // A stop must not lose the batch that is under way.
        Effect.interruptible,
        Effect.fork,
        Effect.flatMap(Fiber.join),
        Effect.uninterruptible
      )
    })
  )
})

/** `@effect/opentelemetry` 0.64 says of every failed span that it was interrupted. */
const mislabels: ReadonlySet<unknown> = new Set(["span.label", "status.interrupted"])

const withoutMislabels = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.filter((item) => !Predicate.hasProperty(item, "key") || !mislabels.has(item.key)).map(withoutMislabels)
  }
  return Predicate.isReadonlyRecord(value) ? Record.map(value, withoutMislabels) : value
}

const serialization = (protocol: OtlpSettings["otlpProtocol"]) =>
  Layer.map(protocol === "http/json" ? layerJson : layerProtobuf, (context) => {
    const encoder = Context.get(context, OtlpSerialization)
    return Context.make(OtlpSerialization, { ...encoder, traces: (data) => encoder.traces(withoutMislabels(data)) })
  })

export const makeSampler =
  (name: string, ratio: number): SpanSource["isSampled"] =>
  (parent) => {
    if (parent !== undefined && name.startsWith("parentbased_")) return parent.sampled
    if (!name.endsWith("traceidratio")) return name.endsWith("always_on")
    // The last 56 bits of an id are random, and the same for all programs that take part in the trace.
    const random = parent === undefined ? Math.random() : Number.parseInt(parent.traceId.slice(-14), 16) / 16 ** 14
    return random >= 1 - ratio
  }

export const layer = (url: string, settings: OtlpSettings) =>
  Layer.scoped(
    Tracing,
    Effect.gen(function* () {
      const { otelResourceAttributes: attributes, otelServiceName, otlpHeaders } = settings
      const clock = yield* Effect.clock
      const address = new URL(url)
      const tracer = yield* OtlpTracer.make({
        // A query may hold a credential, and the tracer logs its address.
        url: address.origin + address.pathname,
        headers: otlpHeaders && Redacted.value(otlpHeaders),
        resource: {
          serviceName: otelServiceName ?? attributes["service.name"] ?? "generation-gateway",
          attributes: { "service.instance.id": randomUUID(), ...Record.remove(attributes, "service.name") }
        },
        exportInterval: "1 second",
        maxBatchSize: batchSize
      }).pipe(Effect.provideServiceEffect(HttpClient.HttpClient, makeClient(address)))
      const isSampled = makeSampler(settings.tracesSampler, settings.tracesSamplerArg)
      return { source: { tracer, now: () => clock.unsafeCurrentTimeNanos(), isSampled } }
    }).pipe(
      // The tracer would read the variables of OpenTelemetry once more.
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map()))
    )
  ).pipe(Layer.provide(serialization(settings.otlpProtocol)))
