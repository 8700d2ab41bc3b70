import { Data, Effect, Schedule, Schema } from "effect"
import { json, type Received, type Reply, serving } from "../harness/upstream/FakeUpstream.ts"

const Value = Schema.Union(
  Schema.Struct({ stringValue: Schema.String }),
  Schema.Struct({ intValue: Schema.Number }),
  Schema.Struct({ doubleValue: Schema.Number }),
  Schema.Struct({ boolValue: Schema.Boolean })
)
const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))

const Span = Schema.Struct({
  traceId: Schema.String.pipe(Schema.pattern(/^[\da-f]{32}$/)),
  spanId: Schema.String.pipe(Schema.pattern(/^[\da-f]{16}$/)),
  parentSpanId: Schema.optional(Schema.String),
  name: Schema.String,
  kind: Schema.Number,
  startTimeUnixNano: Schema.BigInt,
  endTimeUnixNano: Schema.BigInt,
  attributes: Attributes,
  status: Schema.Struct({ code: Schema.Number })
})

const decode = Schema.decodeUnknownSync(
  Schema.Struct({
    resourceSpans: Schema.Array(
      Schema.Struct({
        resource: Schema.Struct({ attributes: Attributes }),
        scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Span) }))
      })
    )
  })
)

type Value = string | number | boolean
const plain = (attributes: typeof Attributes.Type): Readonly<Record<string, Value>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const spansIn = (body: unknown) =>
  decode(body).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({ ...span, attributes: plain(span.attributes), resource: plain(resource.attributes) }))
  )
export type CollectedSpan = ReturnType<typeof spansIn>[number]

class Missing extends Data.TaggedError("Missing")<{ readonly message: string }> {}

const polling = Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(1_000))

/** What stands for an OpenTelemetry collector that takes traces as JSON. */
export const make = Effect.fnUntraced(function* (at: { readonly port?: number } = {}) {
  const calls: Array<Received> = []
  let otherwise: Reply = json(200, {})
  const upstream = yield* serving((response, received) => {
    calls.push(received)
    return otherwise(response, received)
  }, at)
  const spans = () => calls.flatMap(({ body }) => spansIn(body))
  const trace = (id: string) => spans().filter(({ traceId }) => traceId === id)
  return {
    url: upstream.url,
    calls,
    spans,
    answer: (reply: Reply) => {
      otherwise = reply
    },
    /** All spans of a trace as soon as one of that name is among them; children come before their parents. */
    awaitTrace: (id: string, name: string) =>
      Effect.suspend(() => {
        const found = trace(id)
        if (found.some((span) => span.name === name)) return Effect.succeed(found)
        return new Missing({ message: `no span ${name} among ${found.map((span) => span.name).join(", ")}` })
      }).pipe(Effect.retry(polling), Effect.orDie)
  }
})
export type Collector = Effect.Effect.Success<ReturnType<typeof make>>
