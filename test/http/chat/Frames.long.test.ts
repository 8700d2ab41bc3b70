import { Effect, Either, FastCheck as fc, Layer, Option } from "effect"
import { createParser } from "eventsource-parser"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import { UpstreamFailed } from "../../../src/domain/Failure.ts"
import { zero } from "../../../src/domain/Money.ts"
import { isObject } from "../../../src/http/body/Guards.ts"
import { chatCompletions } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import type { ChatDialect } from "../../../src/http/chat/ChatDialect.ts"
import { encodeBrokenStream } from "../../../src/http/errors/ErrorMessages.ts"
import { messages } from "../../../src/http/messages/MessagesDialect.ts"
import { responses } from "../../../src/http/responses/ResponsesDialect.ts"
import type { BodyRead } from "../../../src/providers/client/Exchange.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import { chatOf, hear } from "../../contracts/ChatHarness.ts"
import { type ChatWire, routeTo } from "../../contracts/ChatHosts.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { chatWires } from "../../providers/ChatWires.ts"

const name = { id: "x_0a", created: 7, model: "m" }
const usage = { prompt: 1, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }
const conversation = [{ role: "user", content: "hi" }]

const dialects: ReadonlyArray<readonly [ChatDialect, body: object]> = [
  [chatCompletions, { messages: conversation }],
  [responses, { input: conversation }],
  [messages, { messages: conversation, max_tokens: 100 }]
]

const requestTo = (dialect: ChatDialect, body: object, more: object = {}): ChatRequest =>
  Either.getOrThrow(dialect.decode({ model: "m", stream: true, ...body, ...more }, {}))

interface Frame {
  readonly event: string | undefined
  readonly data: unknown
}

/** The frames of a stream's text, each parsed as JSON; nothing else may be in it. */
const parseFrames = (text: string): ReadonlyArray<Frame> => {
  const frames: Array<Frame> = []
  const parser = createParser({
    onEvent: ({ data, event }) => frames.push({ event, data: data === "[DONE]" ? undefined : JSON.parse(data) }),
    onError: (error) => assert.fail(`${error.message} in ${text}`)
  })
  parser.feed(text)
  assert.lengthOf(frames, text.split("\n\n").length - 1)
  for (const { data, event } of frames) if (event !== undefined) assert.propertyVal(data, "type", event)
  return frames
}

const field = fc.constantFrom("type", "item", "delta", "response", "message", "usage", "sequence_number", "extra")
const json = fc.jsonValue({ maxDepth: 2 })
const type = fc.constantFrom(
  "keepalive",
  "ping",
  "response.of_tomorrow",
  "content_block_delta",
  "a\nb",
  "a\rdata: {",
  ""
)
/** What a host may send: known events without members, unknown ones, and any other object. */
const hostEvent = fc.oneof(
  fc.record({ type }),
  fc.record({ type, sequence_number: fc.nat() }),
  fc.tuple(type, fc.dictionary(field, json)).map(([type, members]) => ({ ...members, type })),
  fc.dictionary(field, json)
)
const text = fc.oneof(fc.constantFrom("", "\ud83d", "\udc4b", '"', "\u2028\n\r", "\u0000"), fc.string())
const event = fc.oneof(
  text.map((text): ChatEvent => ({ type: "content", text })),
  text.map((text): ChatEvent => ({ type: "reasoning", text })),
  fc
    .record(
      { index: fc.nat(2), arguments: text, id: text, name: text, signature: text },
      { requiredKeys: ["index", "arguments"] }
    )
    .map((call): ChatEvent => ({ type: "tool_call", ...call })),
  fc
    .constantFrom("stop" as const, "length" as const, "tool_calls" as const, "content_filter" as const)
    .map((reason): ChatEvent => ({ type: "finish", reason })),
  fc.constant<ChatEvent>({ type: "usage", usage })
)
const nativeEvent = hostEvent.map((event): ChatEvent => ({ type: "native", event }))
const batches = (of: fc.Arbitrary<ChatEvent>) => fc.array(fc.array(of, { maxLength: 4 }), { maxLength: 4 })

const encode = (
  dialect: ChatDialect,
  request: ChatRequest,
  all: ReadonlyArray<ReadonlyArray<ChatEvent>>,
  ends: boolean
) => {
  const encoder = dialect.encoder(name, request)
  const before = all.map((events) => encoder.encode(events)).join("")
  return before + (ends ? encoder.finish(usage, zero) : encoder.error(encodeBrokenStream(new UpstreamFailed())))
}

describe("every frame of a stream is JSON", () => {
  it.each(dialects)("whatever the model says: $path", (dialect, body) => {
    const bodies = [{}, { stream_options: { include_usage: true } }, { include: ["reasoning.encrypted_content"] }]
    const requests = bodies.map((more) => requestTo(dialect, body, more))
    fc.assert(
      fc.property(fc.constantFrom(...requests), batches(event), fc.boolean(), (request, all, ends) => {
        assert.isNotEmpty(parseFrames(encode(dialect, request, all, ends)))
      })
    )
  })

  it.each(dialects.slice(1))("whatever a host of the dialect sends: $path", (dialect, body) => {
    const request = requestTo(dialect, body)
    fc.assert(
      fc.property(batches(nativeEvent), fc.boolean(), (all, ends) => {
        parseFrames(encode(dialect, request, all, ends))
      })
    )
  })

  it.each(dialects.slice(1))(
    "and an event that nobody knows passes with all of its members: $path",
    (dialect, body) => {
      const request = requestTo(dialect, body)
      fc.assert(
        fc.property(fc.dictionary(fc.constantFrom("item", "delta", "extra"), json), (members) => {
          const event = { type: "of_tomorrow", ...members }
          const [frame] = parseFrames(dialect.encoder(name, request).encode([{ type: "native", event }]))
          assert.isTrue(isObject(frame?.data))
          const { sequence_number: _, ...sent } = isObject(frame?.data) ? frame.data : {}
          assert.deepStrictEqual<unknown>(sent, JSON.parse(JSON.stringify(event)))
        })
      )
    }
  )
})

/** A host that sends these bytes, and ends. */
const hostOf = (bytes: Buffer) => {
  const left: Array<BodyRead> = [
    { _tag: "Chunks", chunks: [bytes] },
    { _tag: "End", outcome: Option.none() }
  ]
  const next = (done: (taken: BodyRead) => void) => {
    const taken = left.shift()
    if (taken !== undefined) done(taken)
    return () => {}
  }
  const headers = { "content-type": "text/event-stream" }
  return Layer.succeed(Upstream, {
    post: () => Effect.dieMessage("a stream is asked for"),
    open: () => Effect.succeed({ status: 200, headers, next, finish: () => {} })
  })
}

const noise = fc.oneof(
  hostEvent.map((event) => `data: ${JSON.stringify(event)}\n\n`),
  fc.constantFrom(": comment\n\n", "event: keepalive\ndata: {}\n\n", "event: ping\ndata: {}\n\n", "data: {}\n\n")
)

/** A whole stream of the wire, with anything in between. */
const streamOn = (wire: ChatWire) => {
  const { end, opening, output } = wire.encode({ reasoning: "Hm.", content: "One. Two.", finish: "stop", usage })
  const events = [...opening, ...output, ...end]
  return fc
    .array(fc.tuple(fc.nat(events.length), noise), { maxLength: 5 })
    .map((inserted) =>
      events.flatMap((one, at) => [...inserted.flatMap(([place, more]) => (place === at ? [more] : [])), one]).join("")
    )
}

const pairs = chatWires.flatMap((wire) =>
  dialects.map(([dialect, body]) => [wire.adapter, dialect.path, wire, dialect, body] as const)
)

describe("every frame of a host's stream is JSON", () => {
  it.each(pairs)("of %s for %s", async (_, __, wire, dialect, body) => {
    const request = requestTo(dialect, body)
    await fc.assert(
      fc.asyncProperty(streamOn(wire), async (stream) => {
        const hearing = Effect.flatMap(Effect.flatMap(wire.make, chatOf), (adapter) =>
          hear(adapter, routeTo(wire), request)
        )
        const { events, failure } = await Effect.runPromise(Effect.provide(hearing, hostOf(Buffer.from(stream))))
        assert.isNotEmpty(parseFrames(encode(dialect, request, [events], failure === undefined)))
      }),
      { numRuns: runs(50) }
    )
  })
})
