import { Effect, Either, Fiber, Layer, Option, TestClock } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { applyRules } from "../../../src/domain/ChatRules.ts"
import { chatCompletions } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import type { ChatDialect } from "../../../src/http/chat/ChatDialect.ts"
import { messages } from "../../../src/http/messages/MessagesDialect.ts"
import { responses } from "../../../src/http/responses/ResponsesDialect.ts"
import { Upstream, type UpstreamStream } from "../../../src/providers/client/Upstream.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { Providers } from "../../../src/services/routing/Provider.ts"
import { type ChatWire, routeTo } from "../../contracts/ChatHosts.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { chatWires } from "../../providers/ChatWires.ts"
import { chatsOver, makeSink, nano, openChat, priced } from "../../services/chat/ChatBench.ts"

const dialects: ReadonlyArray<readonly [ChatDialect, object]> = [
  [chatCompletions, { messages: [{ role: "user", content: "hi" }], max_tokens: 30_000 }],
  [responses, { input: "hi", max_output_tokens: 30_000 }],
  [messages, { messages: [{ role: "user", content: "hi" }], max_tokens: 30_000 }]
]

const call = (index: number) => ({ id: `call_${index}`, name: "f", arguments: '{"a":1}' })
/** Its text is short, and most of what it costs is hidden. */
const usage = { prompt: 40, completion: 20_050, cached: 0, cacheWrite: 0, reasoning: 20_000 }
const answer = {
  content: "Hello, you.",
  toolCalls: [0, 1, 2, 3, 4, 5, 6].map(call),
  finish: "tool_calls",
  usage
} as const
const price = 40n + 10n * 20_050n
const cost = 2n * price

const framesOf = ({ encode }: ChatWire) => {
  const { end, opening, output } = encode(answer)
  return [...opening, ...output, ...end]
}

/** A host that sends one frame whenever it is read, and what it was asked on. */
const host = (frames: ReadonlyArray<string>, stallsAt: number, onRead: (at: number) => void) => {
  const seen = { isOpen: false }
  let at = 0
  const next: UpstreamStream["next"] = (done) => {
    onRead(at)
    const frame = frames[at]
    if (at >= stallsAt) return () => {}
    at += 1
    if (frame === undefined) done({ _tag: "End", outcome: Option.none() })
    else done({ _tag: "Chunks", chunks: [Buffer.from(frame)] })
    return () => {}
  }
  const stream = { status: 200, headers: { "content-type": "text/event-stream" }, next, finish: () => {} }
  const layer = Layer.mock(Upstream, {
    open: () =>
      Effect.as(
        Effect.acquireRelease(
          Effect.sync(() => (seen.isOpen = true)),
          () => Effect.sync(() => (seen.isOpen = false))
        ),
        stream
      )
  })
  return { layer, seen }
}

interface Departure {
  /** How many frames have been read by then. */
  readonly leavesAt: number
  /** The host sends nothing after so many frames. */
  readonly stallsAt?: number
}

const leave = (wire: ChatWire, [dialect, body]: (typeof dialects)[number], { leavesAt, stallsAt = 1_000 }: Departure) =>
  Effect.gen(function* () {
    const bench = yield* makeSink
    let shown = ""
    let atDeparture: string | undefined
    const { layer, seen } = host(framesOf(wire), stallsAt, (at) => {
      if (at !== leavesAt || atDeparture !== undefined) return
      atDeparture = shown
      bench.departure.leave()
    })
    const provider = yield* Effect.provide(wire.make, layer)
    const route = {
      ...routeTo(wire, undefined, wire.options),
      cost: { ...priced().pricing, prompt: nano(2n), completion: nano(20n) }
    }
    const model = { ...priced(route), maxOutput: 30_000 }
    const decoded = Either.flatMap(dialect.decode({ model: "m", stream: true, ...body }, {}), (asked) =>
      applyRules(model, asked)
    )
    const request = Either.getOrThrow(decoded)
    const encoder = dialect.encoder({ id: "x_1", created: 0, model: "m" }, request)
    const sink = {
      ...bench.sink,
      write: (events: ReadonlyArray<ChatEvent>) => {
        shown += encoder.encode(events)
        return bench.sink.write(events)
      }
    }
    const fake = { layer: Layer.succeed(Providers, new Map([[provider.adapter, provider]])) }
    const left = yield* Effect.gen(function* () {
      const { books, org, record } = yield* openChat(10_000_000n)
      const chat = yield* ChatCompletions
      yield* chat.stream({ model, request, record }, sink)
      assert.isFalse(seen.isOpen)
      assert.strictEqual(yield* books.openHolds(org), 0)
      assert.strictEqual(10_000_000n - (yield* (yield* Ledger).balance(org)).balance, record.summary.charge)
      return record
    }).pipe(Effect.provide(chatsOver(fake)))
    const { events } = yield* bench.line
    return { record: left, events, shown: atDeparture ?? shown }
  })

/** The characters of a stream, each a token. */
const produced = (events: ReadonlyArray<ChatEvent>) => {
  let length = 0
  for (const event of events) {
    if (event.type === "content" || event.type === "reasoning") length += event.text.length
    else if (event.type === "tool_call") length += (event.name ?? "").length + event.arguments.length
  }
  return length
}

/** After so many frames, the last after all of them. */
const pointsOf = (wire: ChatWire) => {
  const { length } = framesOf(wire)
  return Array.from({ length: 10 }, (_, index) => Math.round(((index + 1) * length) / 10))
}

const cases = chatWires.flatMap((wire) => dialects.map((dialect) => ({ wire, dialect })))

/** All at once, since each may take two seconds. */
const leaveEverywhere = (wire: ChatWire, dialect: (typeof dialects)[number], stalls: boolean) =>
  Effect.gen(function* () {
    const leaving = Effect.forEach(
      pointsOf(wire),
      (leavesAt) =>
        Effect.map(leave(wire, dialect, { leavesAt, ...(stalls && { stallsAt: leavesAt }) }), (left) => ({
          ...left,
          what: `after ${leavesAt} frames`,
          read: framesOf(wire).slice(0, leavesAt)
        })),
      { concurrency: "unbounded" }
    )
    const work = yield* Effect.fork(leaving)
    yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => Effect.map(Fiber.poll(work), Option.isSome) })
    const left = yield* Fiber.join(work)
    assert.isAbove(left.filter(({ shown }) => shown !== "").length, 5)
    return left
  })

const isCounted = (frame: string) => !frame.includes("message_start") && frame.includes("20000")

for (const { dialect, wire } of cases) {
  describe(`a client of ${dialect[0].path} that leaves a stream of ${wire.adapter}`, () => {
    it.effect("pays the reported price at each of ten points where the stream ends without it", function* () {
      for (const { record, shown, what } of yield* leaveEverywhere(wire, dialect, false)) {
        if (shown === "") assert.isAtMost(Number(record.summary.charge), 100, what)
        else
          assert.deepStrictEqual(
            [record.summary.charge, record.summary.cost, [...record.summary.notes]],
            [price, cost, []],
            what
          )
      }
    })

    it.effect("pays what it received, or the count that was told, where no end comes", function* () {
      for (const { events, read, record, shown, what } of yield* leaveEverywhere(wire, dialect, true)) {
        const { charge, notes, usage: counted } = record.summary
        if (shown === "") assert.isAtMost(Number(charge), 100, what)
        else if (read.some(isCounted)) {
          assert.deepStrictEqual([charge, record.summary.cost, [...notes]], [price, cost, []], what)
        } else {
          assert.include([40, 100], counted?.prompt, what)
          const own = BigInt(counted?.prompt ?? 0) + 10n * BigInt(produced(events))
          assert.deepStrictEqual([charge, record.summary.cost, [...notes]], [own, 2n * own, ["usage_estimated"]], what)
        }
      }
    })
  })
}
