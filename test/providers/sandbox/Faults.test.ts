import { Effect, Exit, Fiber, Option, Scope, TestClock } from "effect"
import type { ChatEvent, Message } from "../../../src/domain/Chat.ts"
import { readFaultsNow } from "../../../src/providers/sandbox/Faults.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { asks, chatOf, complete, hear, joined, outputs, request, route, spoken, test } from "./Sandbox.ts"

describe("a fault", () => {
  const meets = (text: string, provider?: string) => {
    const chatRequest = { messages: asks(text) }
    return Effect.gen(function* () {
      const failure = yield* Effect.flip(complete(chatRequest, provider))
      const heard = yield* hear(chatRequest, provider)
      assert.deepStrictEqual(
        [heard.failure?.class, heard.failure?.status, heard.failure?.detail],
        [failure.class, failure.status, failure.detail]
      )
      return { failure, heard }
    }).pipe(Effect.catchAll((answer) => Effect.dieMessage(`answered ${JSON.stringify(answer)}`)))
  }
  const fine = Effect.fnUntraced(function* (text: string, provider?: string) {
    const answer = yield* complete({ messages: asks(text) }, provider)
    const { failure, pulls } = yield* hear({ messages: asks(text) }, provider)
    assert.isUndefined(failure)
    assert.deepStrictEqual(joined(pulls), spoken(answer))
    return answer
  })

  const classes: Record<number, FailureClass> = {
    400: "request",
    401: "account",
    402: "account",
    403: "account",
    404: "retry",
    408: "retry",
    413: "request",
    422: "request",
    429: "limit",
    500: "retry",
    503: "retry",
    529: "retry"
  }
  test("status fails with the class that the status has", function* () {
    for (const [status, kind] of Object.entries(classes)) {
      const { failure, heard } = yield* meets(`Hello [sandbox status=${status}] there`)
      assert.deepStrictEqual([failure.class, failure.status, heard.pulls], [kind, Number(status), []])
    }
  })

  test("routes limits a bracket to the model's first routes", function* () {
    yield* meets("[sandbox status=429 routes=1]")
    yield* fine("[sandbox status=429 routes=1]", "sandbox-b")
    yield* meets("[sandbox status=429 routes=2]", "sandbox-b")
    yield* fine("[sandbox status=429 routes=2]", "sandbox-c")
    yield* meets("[sandbox status=429]", "sandbox-c")
    yield* meets("[sandbox status=429 routes=1]", "my-own")
    const both = "[sandbox status=429 routes=1] [sandbox moderation]"
    assert.strictEqual((yield* meets(both)).failure.class, "limit")
    assert.strictEqual((yield* meets(both, "sandbox-b")).failure.class, "moderation")
  })

  test("moderation refuses", function* () {
    const { failure } = yield* meets("Hello [sandbox moderation]")
    assert.strictEqual(failure.class, "moderation")
  })

  test("cut breaks a stream after so many deltas, and an answer altogether", function* () {
    for (const cut of [0, 1, 3, 7]) {
      const { failure, heard } = yield* meets(`[sandbox cut=${cut}] Why is the sky blue?`)
      assert.deepStrictEqual([failure.class, failure.status], ["network", undefined])
      assert.strictEqual(heard.pulls.flat().length, cut)
      assert.strictEqual(outputs(heard.pulls).length, cut)
    }
    yield* fine("[sandbox cut=5000] Why is the sky blue?")
    const oneDelta = { messages: asks("[sandbox cut=1] Hello"), maxTokens: 1 }
    assert.strictEqual((yield* hear(oneDelta)).failure?.class, "network")
    assert.strictEqual((yield* Effect.either(complete(oneDelta)))._tag, "Left")
    assert.isUndefined((yield* hear({ ...oneDelta, messages: asks("[sandbox cut=2] Hello") })).failure)
  })

  test("a switch in any message counts, the later one where two disagree", function* () {
    const messages: ReadonlyArray<Message> = [
      { role: "system", content: [{ type: "text", text: "[sandbox status=500]" }] },
      { role: "assistant", content: "[SANDBOX\nSTATUS=502 delay=x]" },
      { role: "user", content: "Go on." }
    ]
    assert.strictEqual((yield* Effect.flip(complete({ messages }))).status, 502)
  })

  test("what is unknown, malformed or for renders only is ignored, and no switch is repeated", function* () {
    const brackets = [
      "[sandbox fail]",
      "[sandbox]",
      "[sandbox status=200]",
      "[sandbox status=abc]",
      "[sandbox status=5e2]",
      "[sandbox status=503 routes=0 __proto__=1 constructor=2] [sandbox status=99]",
      "[sandbox cut=-1 delay=1e9 gap=9999999999 nonsense = =]"
    ]
    for (const bracket of brackets.filter((text) => !text.includes("503"))) {
      const { content } = yield* fine(`${bracket} Why is the sky blue?`)
      assert.include(content, '"Why is the sky blue?"')
      assert.notInclude(content, "[sandbox")
    }
    assert.strictEqual((yield* meets(brackets[5] ?? "")).failure.status, 503)
    yield* fine("[sandboxstatus=503] [sandbox status=503 [nested")
  })

  test("a prompt full of opened brackets is read in time", () => Effect.asVoid(fine("[sandbox ".repeat(100_000))))
})

describe("time", () => {
  const text = "[sandbox delay=5000]"

  test("passes only where a delay asks for it", function* () {
    const chatRequest = { messages: asks(text) }
    for (const running of [Effect.asVoid(complete(chatRequest)), Effect.asVoid(hear(chatRequest))]) {
      const fiber = yield* Effect.fork(running)
      yield* TestClock.adjust(4999)
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
    }
  })

  test("passes before a failure too, on the routes of its bracket", function* () {
    const messages = asks("[sandbox status=503 routes=1 delay=200]")
    const fiber = yield* Effect.fork(Effect.flip(complete({ messages })))
    yield* TestClock.adjust(199)
    assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
    yield* TestClock.adjust(1)
    assert.strictEqual((yield* Fiber.join(fiber)).status, 503)
    yield* complete({ messages }, "sandbox-b")
  })

  test("passes between deltas where a gap asks for it", function* () {
    const chat = yield* chatOf
    const chatRequest = request({ messages: asks("[sandbox gap=100]") })
    const pulls: Array<ReadonlyArray<ChatEvent>> = []
    const pull = yield* chat.stream(route(), chatRequest)
    const fiber = yield* Effect.fork(Effect.ignore(Effect.forever(Effect.map(pull, (events) => pulls.push(events)))))
    yield* Effect.yieldNow()
    for (let heard = 1; heard < 10; heard++) {
      assert.strictEqual(pulls.length, heard)
      assert.isTrue(pulls.every((events) => events.length === 1))
      yield* TestClock.adjust(100)
    }
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
    assert.deepStrictEqual(joined(pulls), spoken(yield* chat.complete(route(), chatRequest)))
  })

  test("stops for a pull whose stream is closed", function* () {
    const chat = yield* chatOf
    const scope = yield* Scope.make()
    const opened = chat.stream(route(), request({ messages: asks("[sandbox gap=100]") }))
    const pull = yield* Effect.provideService(opened, Scope.Scope, scope)
    assert.isTrue(Option.isSome(yield* Effect.option(pull)))
    const waiting = yield* Effect.fork(Effect.flip(pull))
    yield* Effect.yieldNow()
    yield* Scope.close(scope, Exit.void)
    const failure = yield* Effect.map(Fiber.join(waiting), Option.getOrThrow)
    assert.strictEqual(failure.class, "network")
  })
})

describe("a switch in a long text", () => {
  const piece = 64 * 1024

  it("is found wherever it stands, and found once", () => {
    for (const name of ["[sandbox status=503]", `[sandbox ${"x ".repeat(90)}status=503]`]) {
      for (let at = piece - name.length - 1; at <= piece + 1; at++) {
        const text = `${"y".repeat(at)}${name}${"[".repeat(piece)}`
        assert.deepStrictEqual(readFaultsNow(route(), [text]), { status: 503 })
      }
    }
  })

  it("that never closes is none", () => {
    assert.deepStrictEqual(readFaultsNow(route(), ["[sandbox ".repeat(100_000), "[".repeat(1_000_000)]), {})
  })
})
