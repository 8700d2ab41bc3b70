import { Effect, Exit, Fiber, Scope } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../src/domain/Chat.ts"
import type { FailureClass } from "../../src/services/routing/Provider.ts"
import { assert, describe, effectOf, liveOver } from "../harness/It.ts"
import { featuresContract } from "./ChatFeatures.ts"
import {
  type Answer,
  type Check,
  chatOf,
  comesOut,
  type Fault,
  type Harness,
  type Host,
  hear,
  joined,
  request
} from "./ChatHarness.ts"

const classes: Readonly<Record<Fault, FailureClass>> = {
  limit: "limit",
  funds: "account",
  key: "account",
  request: "request",
  image: "request",
  moderation: "moderation",
  server: "retry",
  missing: "retry",
  page: "retry",
  garbage: "retry",
  empty: "retry",
  "error inside": "retry",
  "deep error": "retry",
  "cut answer": "network",
  "cut stream": "network"
}

const stop = ["END", "\n\n"]

const stopsContract = ({ has, sentStops }: Harness, check: Check) => {
  if (has.stop) {
    check("stop sequences reach the host", (adapter, host) =>
      comesOut(adapter, host, request({ stop }), { content: "a", finish: "stop" }, {}).pipe(
        Effect.map((sent) => assert.deepStrictEqual(sent.stop, sentStops?.(stop) ?? stop))
      )
    )
    return
  }
  check("stop sequences that the host does not know cut the answer", (adapter, host) =>
    comesOut(
      adapter,
      host,
      request({ stop }),
      { content: "One. END Two.", finish: "length" },
      { content: "One. ", finish: "stop" }
    ).pipe(Effect.map((sent) => assert.deepStrictEqual(sent.stop, [])))
  )
}

const faultsContract = (harness: Harness, check: Check) => {
  for (const fault of harness.faults) {
    const meaning = classes[fault]
    if (fault !== "cut stream") {
      check(`a JSON answer that meets ${fault} fails as ${meaning}`, function* (adapter, host) {
        yield* host.fail(fault)
        const failure = yield* Effect.flip(adapter.complete(host.route, request()))
        assert.strictEqual(failure.class, meaning)
        if (fault === "limit") assert.deepStrictEqual([failure.status, failure.retryAfterSeconds], [429, 7])
        assert.strictEqual(failure.param, fault === "image" ? "messages" : undefined)
        if (fault === "cut answer") assert.strictEqual(failure.status, 200)
      })
    }
    if (fault !== "cut answer") {
      check(`a stream that meets ${fault} fails as ${meaning}`, function* (adapter, host) {
        yield* host.fail(fault)
        const { events, failure } = yield* hear(adapter, host.route, request())
        assert.strictEqual(failure?.class, meaning)
        if (fault === "limit") assert.deepStrictEqual([failure?.status, failure?.retryAfterSeconds], [429, 7])
        const hasOutput = events.some(({ type }) => type !== "usage")
        const breaksOnItsWay = fault === "cut stream" || fault === "deep error"
        assert.strictEqual(hasOutput, breaksOnItsWay, "only a stream that broke on its way has output")
        assert.isFalse(events.some((event) => event.type === "finish"))
      })
    }
  }
}

/** What can only be seen on a host that waits. */
const cancellationContract = (usage: Usage, check: Check) => {
  const answer: Answer = { content: "first and last", finish: "stop", usage }
  const hold = (host: Host) => host.hold?.(answer) ?? Effect.dieMessage("the host cannot wait")

  check("a delta is passed on before the next one exists", function* (adapter, host) {
    const { release } = yield* hold(host)
    const pull = yield* adapter.stream(host.route, request({ stream: true }))
    const heard = [...(yield* pull)]
    while (!heard.some((event) => event.type === "content" && event.text !== "")) heard.push(...(yield* pull))
    yield* release
    while (!heard.some((event) => event.type === "finish")) heard.push(...(yield* pull))
    assert.strictEqual(joined(heard).content, answer.content)
  })

  check("closing a stream's scope cancels the call", function* (adapter, host) {
    const { gone } = yield* hold(host)
    const scope = yield* Scope.make()
    const pull = yield* adapter.stream(host.route, request({ stream: true })).pipe(Scope.extend(scope))
    yield* pull
    yield* Scope.close(scope, Exit.void)
    yield* gone
  })

  const leave = Effect.fnUntraced(function* (host: Host, call: Effect.Effect<unknown, unknown>) {
    const { gone } = yield* hold(host)
    const calling = yield* Effect.fork(call)
    yield* host.received
    yield* Fiber.interrupt(calling)
    yield* gone
  })
  check("interrupting an open pull does not wait for the host", (adapter, host) =>
    leave(host, hear(adapter, host.route, request()))
  )
  check("interrupting a JSON call cancels it", (adapter, host) => leave(host, adapter.complete(host.route, request())))
}

/** What every chat adapter owes the gateway, against any host that can be scripted. */
export const chatAdapterContract = (harness: Harness) =>
  describe(`a chat adapter: ${harness.name}`, () => {
    const { has } = harness
    const usage = { prompt: 21, completion: 13, cached: has.cached ? 8 : 0, cacheWrite: 0, reasoning: 0 }
    const check: Check = (name, body) =>
      liveOver(harness.upstream)(name, function* () {
        return yield* effectOf(body)(yield* Effect.flatMap(harness.make, chatOf), yield* harness.host)
      })
    const comes = (name: string, asked: Partial<ChatRequest>, answer: Answer & Partial<ChatAnswer>) =>
      check(name, (adapter, host) => comesOut(adapter, host, request(asked), answer, answer))

    const content = "Grüße aus Zürich, 你好 👋"
    check("text comes back as the model wrote it, with its usage", (adapter, host) =>
      comesOut(
        adapter,
        host,
        request({ maxTokens: 77 }),
        { content, finish: "stop", usage },
        { content, reasoning: undefined, toolCalls: [], finish: "stop", usage }
      ).pipe(
        Effect.map(({ json, maxTokens, reasons, searches, temperature, topP }) => {
          assert.strictEqual(maxTokens, 77)
          assert.deepStrictEqual([json, reasons, searches].filter(Boolean), [], "what was not asked for")
          assert.deepStrictEqual([temperature, topP], [undefined, undefined])
        })
      )
    )
    comes(
      "an output cut by its token limit finishes with length",
      { maxTokens: 3 },
      { content: "a b", finish: "length" }
    )
    comes("an answer without counts has no usage", {}, { content: "Hm.", finish: "stop", usage: undefined })
    if (has.withholding) {
      const withheld = { finish: "content_filter", usage } as const
      comes("an answer withheld on its way keeps its beginning", {}, { content: "I was", ...withheld })
      comes("an answer withheld from the start is empty", {}, { content: "", ...withheld })
    }
    featuresContract(harness, usage, check)
    stopsContract(harness, check)
    faultsContract(harness, check)
    if (harness.holds) cancellationContract(usage, check)
  })
