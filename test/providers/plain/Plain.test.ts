import { Effect, Layer, Option } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { chatAdapterContract } from "../../contracts/ChatAdapter.ts"
import { joined } from "../../contracts/ChatHarness.ts"
import { harnesses, layer, routeTo, secret } from "../../contracts/ChatHosts.ts"
import { oddAnswersContract } from "../../contracts/OddAnswers.ts"
import { acme, model, request } from "../../fakes/ProviderFake.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { decodeFailure } from "./PlainFailure.ts"
import { plain } from "./Wire.ts"

harnesses(plain).forEach(chatAdapterContract)
oddAnswersContract(plain)

const router = ProviderRouter.layer().pipe(
  Layer.provide(
    Layer.effect(
      Providers,
      Effect.map(plain.make, (provider) => new Map([[provider.adapter, provider]]))
    )
  ),
  Layer.provide(layer)
)

const hostsAt = (url: string) => {
  const route = routeTo(plain, url)
  const named = (name: string) => ({ ...route, id: `plain@${name}`, provider: { ...route.provider, name } })
  return model(named("a"), named("b"))
}

const usage = { prompt: 4, completion: 2, cached: 0, cacheWrite: 0, reasoning: 0 }
const answer = { content: "Grüezi.", finish: "stop", usage } as const
const expected = { ...answer, reasoning: undefined, toolCalls: [] }
const busy = Fake.json(503, { error: { message: "busy" } })
const { body, end, output } = plain.encode(answer)

describe("the example adapter", () => {
  it("reads an error in a shape of its own, else by the convention", () => {
    const { provider } = routeTo(plain)
    const classOf = (status: number, body: string) => decodeFailure(provider, { status, headers: {}, body }, 0).class
    assert.strictEqual(classOf(498, JSON.stringify({ fault: { kind: "blocked", say: "no" } })), "moderation")
    assert.strictEqual(classOf(400, JSON.stringify({ fault: { kind: "rate_limit_exceeded" } })), "limit")
    assert.strictEqual(classOf(503, "<html>busy</html>"), "retry")
  })

  liveOver(router)("answers behind the router, after a route that failed", function* () {
    const fake = yield* Fake.make
    const attempts = new AttemptHistory(acme)
    yield* fake.script(busy, Fake.json(200, body))
    const chatRequest = request({ maxTokens: 9 })
    const { answer: got, route } = yield* (yield* ProviderRouter).complete(hostsAt(fake.url), chatRequest, attempts)
    assert.deepStrictEqual(got, expected)
    assert.strictEqual(route.provider.name, "b")
    assert.deepStrictEqual(
      attempts.list.map(({ outcome }) => outcome),
      ["retry", "ok"]
    )
    const { body: sent, headers, path: asking } = yield* fake.received
    assert.deepStrictEqual([asking, headers["x-key"]], ["/generate", secret])
    const turns = [{ who: "user", text: "hi" }]
    assert.deepStrictEqual(sent, { model: "plain-1", turns, limit: 9, stop: [], stream: false })
  })

  liveOver(router)("streams behind the router, and says when a stream was cut", function* () {
    const fake = yield* Fake.make
    const { stream } = yield* ProviderRouter
    const hear = Effect.gen(function* () {
      const { firstEvents: first, pull } = yield* stream(
        hostsAt(fake.url),
        request({ stream: true }),
        new AttemptHistory(acme)
      )
      const events: Array<ChatEvent> = [...first]
      const ended = yield* Effect.flip(Effect.forever(Effect.map(pull, (more) => events.push(...more))))
      return { events, ended }
    }).pipe(Effect.scoped)

    yield* fake.script(busy, Fake.sse(...output, ...end), Fake.sse(...output))
    const whole = yield* hear
    assert.isTrue(Option.isNone(whole.ended))
    assert.deepStrictEqual(joined(whole.events), expected)
    const { ended } = yield* hear
    assert.deepStrictEqual(
      Option.map(ended, ({ _tag }) => _tag),
      Option.some("UpstreamFailed")
    )
  })
})
