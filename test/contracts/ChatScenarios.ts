import { Effect, type Scope } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, FinishReason, Usage } from "../../src/domain/Chat.ts"
import type { Route } from "../../src/domain/Model.ts"
import type { ChatCall } from "../../src/providers/chat/ChatClient.ts"
import { fitRequest } from "../../src/providers/chat/Fitting.ts"
import type { WireRules } from "../../src/providers/chat/WireRules.ts"
import type { OptionsDecoder } from "../../src/providers/client/RouteOptions.ts"
import type { ChatAdapter, FailureClass } from "../../src/services/routing/Provider.ts"
import { assert, type Body, effectOf, liveOver } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { chatOf, type Heard, hear, joined, request } from "./ChatHarness.ts"
import { type ChatWire, layer, routeTo } from "./ChatHosts.ts"

export const text = (text: string): ChatEvent => ({ type: "content", text })
export const finished = (reason: FinishReason): ChatEvent => ({ type: "finish", reason })
export const usageOf = (usage: Partial<Usage>): Usage => {
  return { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0, ...usage }
}
export const counted = (usage: Partial<Usage>) => ({ type: "usage" as const, usage: usageOf(usage) })
/** Of an answer that goes on. */
export const countedSoFar = (usage: Partial<Usage>): ChatEvent => ({ ...counted(usage), isPartial: true })

/** A call whose request is encoded without being sent. */
export const callTo =
  <Options, Quirks>(
    wire: ChatWire,
    {
      decoder,
      rulesOf
    }: { readonly decoder: OptionsDecoder<Options>; readonly rulesOf: (options: Options) => WireRules },
    quirks: Quirks
  ) =>
  (asked: Partial<ChatRequest>, options: Route["options"] = {}, isStream = false): ChatCall<Options, Quirks> => {
    const route = routeTo(wire, "http://host.test", options)
    const given = decoder.of(route)
    const call = { route, ...fitRequest(request(asked), rulesOf(given)), options: given, isStream, quirks }
    return { ...call, discoveredQuirks: {}, newId: () => "call_new" }
  }

type ScenarioBody = Body<[adapter: ChatAdapter, fake: Fake.FakeUpstream, route: Route], Scope.Scope>

/** Tests of an adapter against scripted bytes of its wire. */
export const scenarios = (wire: ChatWire) => {
  /** A test against a fake of its own. */
  const check = (name: string, body: ScenarioBody, options: Route["options"] = {}) =>
    liveOver(layer)(name, function* () {
      const adapter = yield* Effect.flatMap(wire.make, chatOf)
      const fake = yield* Fake.make
      return yield* effectOf(body)(adapter, fake, routeTo(wire, fake.url, options))
    })

  /** What becomes of a stream's bytes. */
  const streams = (
    name: string,
    steps: ReadonlyArray<Fake.Step>,
    then: (heard: Heard) => void,
    asked: Partial<ChatRequest> = {}
  ) =>
    check(name, function* (adapter, fake, route) {
      yield* fake.script(Fake.sse(...steps))
      then(yield* hear(adapter, route, request(asked)))
    })

  return {
    check,
    streams,

    /** Streams of which exactly these events come out. */
    streamsAs: (rows: ReadonlyArray<readonly [string, ReadonlyArray<Fake.Step>, ReadonlyArray<ChatEvent>]>) => {
      for (const [name, steps, events] of rows) {
        streams(name, steps, (heard) => assert.deepStrictEqual(heard, { events, failure: undefined }))
      }
    },

    /** Streams that break: as what, with which status, and after which events. */
    breaks: (
      rows: ReadonlyArray<readonly [string, ReadonlyArray<Fake.Step>, FailureClass, number, ReadonlyArray<ChatEvent>?]>
    ) => {
      for (const [name, steps, meaning, status, before = []] of rows) {
        streams(`${name} breaks the stream: ${meaning}`, steps, ({ events, failure }) =>
          assert.deepStrictEqual([events, failure?.class, failure?.status], [before, meaning, status])
        )
      }
    },

    /** Whole answers, and what is read of them. */
    answers: (rows: ReadonlyArray<readonly [string, unknown, Partial<ChatAnswer>]>) => {
      for (const [name, body, expected] of rows) {
        check(name, function* (adapter, fake, route) {
          yield* fake.script(Fake.json(200, body), Fake.json(200, body))
          const answer = yield* adapter.complete(route, request())
          assert.deepStrictEqual({ ...answer, ...expected }, answer)
          const { events, failure } = yield* hear(adapter, route, request())
          assert.isUndefined(failure)
          const withoutIds = ({ toolCalls, ...rest }: ChatAnswer) => [rest, toolCalls.map((call) => call.function)]
          assert.deepStrictEqual(withoutIds(joined(events)), withoutIds(answer), "in place of a stream")
        })
      }
    },

    /** Bodies of a good status that are no answers, asked for in one piece or as a stream. */
    noAnswers: (rows: ReadonlyArray<readonly [string, unknown]>) => {
      for (const [name, body] of rows) {
        check(`${name} is no answer`, function* (adapter, fake, route) {
          yield* fake.script(Fake.json(200, body), Fake.json(200, body))
          const failure = yield* Effect.flip(adapter.complete(route, request()))
          const { events, failure: streamed } = yield* hear(adapter, route, request())
          assert.deepStrictEqual([failure.class, failure.status, streamed?.class, events], ["retry", 200, "retry", []])
        })
      }
    },

    /** Any cut of a stream's bytes gives the same answer. */
    survivesCuts: (events: ReadonlyArray<string>, expected: Partial<ChatAnswer>) =>
      check("any cut of a stream's bytes gives the same answer", function* (adapter, fake, route) {
        const bytes = Buffer.from(events.join(""))
        for (const size of [1, 2, 3, 7]) {
          const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
            bytes.subarray(at * size, (at + 1) * size)
          )
          yield* fake.script(Fake.sse(...pieces.flatMap((piece) => [piece, Effect.yieldNow()])))
          const { events: heard } = yield* hear(adapter, route, request())
          assert.deepStrictEqual({ ...joined(heard), ...expected }, joined(heard))
        }
      }),

    /** The bodies of so many requests that the fake has received. */
    bodies: (fake: Fake.FakeUpstream, count: number) =>
      Effect.map(Effect.replicateEffect(fake.received, count), (all) => all.map(({ body }) => Object(body)))
  }
}
