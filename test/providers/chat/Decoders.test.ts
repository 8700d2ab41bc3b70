import { Effect, Exit, Fiber, Option, Predicate, Scope } from "effect"
import { makeChatAdapter } from "../../../src/providers/chat/ChatClient.ts"
import { type ChatDecoder, chatPull } from "../../../src/providers/chat/WireStream.ts"
import { decodingFailure, protocolFailure } from "../../../src/providers/client/Classification.ts"
import type { BodyRead } from "../../../src/providers/client/Exchange.ts"
import { noOptions } from "../../../src/providers/client/RouteOptions.ts"
import { rules } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { hear, request } from "../../contracts/ChatHarness.ts"
import { layer, routeTo } from "../../contracts/ChatHosts.ts"
import { counted, text } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { account } from "../client/Upstreams.ts"
import { openAiChat } from "../openai-chat/Wire.ts"

const thrower = (): never => {
  throw new RangeError("secret output")
}

const usage = { prompt: 3, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }

/** Emits the text of every event. Throws at an event that requests it. */
const decoder = (changes: Partial<ChatDecoder> = {}): ChatDecoder => ({
  take: ({ words }, out) => {
    if (words === "throw") return thrower()
    out.push(text(String(words)))
    return undefined
  },
  startsGeneration: () => false,
  usage: () => usage,
  ...changes
})

const adapterOf = (changes: Partial<ChatDecoder> = {}) =>
  makeChatAdapter({
    optionsDecoder: noOptions,
    rules: () => rules,
    features: () => new Set(),
    endpoint: () => ({ path: "/chat", authorization: () => ({}) }),
    encode: () => ({}),
    decode: thrower,
    decoder: () => decoder(changes),
    errorIn: ({ error }) => (error === "throw" ? thrower() : undefined),
    usageIn: ({ count }) => (Predicate.isNumber(count) ? { ...usage, prompt: count, completion: 2 } : undefined),
    quirks: () => ({}),
    adapt: thrower
  })

const check = (
  name: string,
  reply: Fake.Reply,
  body: (heard: Effect.Effect.Success<ReturnType<typeof hear>>) => void,
  changes: Partial<ChatDecoder> = {}
) =>
  liveOver(layer)(name, function* () {
    const fake = yield* Fake.make
    yield* fake.script(reply)
    body(yield* hear(yield* adapterOf(changes), routeTo(openAiChat, fake.url), request()))
  })

const said = (words: string) => Fake.event({ words })

describe("a chat decoder that throws", () => {
  for (const [name, status] of [
    ["at an answer", 200],
    ["at a refusal", 400]
  ] as const) {
    liveOver(layer)(`${name} fails the call, for another route to take over`, function* () {
      const fake = yield* Fake.make
      yield* fake.script(Fake.json(status, {}), Fake.json(status, {}))
      const adapter = yield* adapterOf()
      const route = routeTo(openAiChat, fake.url)
      const failure = yield* Effect.flip(adapter.complete(route, request()))
      const { failure: streamed } = yield* hear(adapter, route, request())
      for (const found of [failure, streamed]) {
        assert.deepStrictEqual([found?.class, found?.status], ["retry", status])
        assert.include(found?.detail, "RangeError")
        assert.notInclude(found?.detail, "secret")
      }
    })
  }

  check("at a stream's first event fails it without output", Fake.sse(said("throw"), Effect.never), (heard) => {
    assert.deepStrictEqual([heard.events, heard.failure?.class], [[counted(usage)], "retry"])
  })

  const broken = [text("a"), counted(usage)]
  check("on the way breaks the stream with its counts", Fake.sse(said("a"), said("throw"), Effect.never), (heard) => {
    assert.deepStrictEqual([heard.events, heard.failure?.class, heard.failure?.spent], [broken, "retry", usage])
  })
  const failing = Fake.sse(said("a"), Fake.event({ error: "throw" }), Effect.never)
  check("at an error breaks the stream", failing, (heard) => {
    assert.deepStrictEqual([heard.events, heard.failure?.class], [broken, "retry"])
  })
  check(
    "at the end breaks the stream",
    Fake.sse(said("a")),
    (heard) => assert.deepStrictEqual([heard.events, heard.failure?.class], [broken, "retry"]),
    { finish: thrower }
  )
})

describe("an error in a stream", () => {
  const counting = (prompt: number) => Fake.sse(said("a"), Fake.event({ type: "error", count: prompt }), Effect.never)
  check("keeps what it counts itself", counting(usage.prompt), ({ events, failure }) => {
    const spent = { ...usage, completion: 2 }
    assert.deepStrictEqual([events, failure?.spent], [[text("a"), counted(spent)], spent])
  })

  check("that leaves out the prompt keeps what was counted before", counting(0), ({ events, failure }) =>
    assert.deepStrictEqual([events, failure?.spent], [[text("a"), counted(usage)], usage])
  )
})

describe("a pull that waits when its scope closes", () => {
  /** Returns how the stream ends after these bytes. */
  const cutOff = Effect.fnUntraced(function* (
    changes: Partial<ChatDecoder>,
    sent: (wake: (taken: BodyRead) => void) => void
  ) {
    let wake: (taken: BodyRead) => void = () => {}
    const next = (done: (taken: BodyRead) => void) => {
      wake = done
      return () => {}
    }
    const stream = { status: 200, headers: {}, next, finish: () => {} }
    const scope = yield* Scope.make()
    const failures = {
      decode: () => undefined,
      protocol: (what: string) => protocolFailure(account("http://host.test"), 200, what),
      defect: (thrown: unknown) => decodingFailure(account("http://host.test"), 200, thrown)
    }
    const whole = { isExpected: false, decode: () => Effect.dieMessage("an answer in one piece") }
    const pull = yield* Scope.extend(chatPull(stream, decoder(changes), failures, whole), scope)
    const pulling = yield* Effect.fork(Effect.flip(Effect.forever(pull)))
    yield* Effect.yieldNow()
    sent(wake)
    yield* Scope.close(scope, Exit.void)
    return Option.getOrUndefined(yield* Fiber.join(pulling))
  })

  it.live("fails, although its host never says a word", () =>
    Effect.map(
      cutOff({}, () => {}),
      (failure) => assert.strictEqual(failure?.class, "network")
    )
  )
  it.live("fails, whatever its decoder throws", () =>
    Effect.map(
      cutOff({ usage: thrower }, (wake) => {
        assert.throws(() => wake({ _tag: "Chunks", chunks: [Buffer.from(said("throw"))] }), RangeError)
      }),
      (failure) => assert.strictEqual(failure?.class, "retry")
    )
  )
})
