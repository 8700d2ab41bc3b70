import { Deferred, Effect, Option } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import type { ChatPull } from "../../../src/services/routing/Provider.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import { finished, scenarios, text } from "../../contracts/ChatScenarios.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { refusing } from "../openai-chat/Wire.ts"
import { inEvents, inOnePiece, openAiResponses, response, wire } from "./Wire.ts"

const { bodies, check } = scenarios(openAiResponses)

const hi = { content: "hi", finish: "stop" } as const

describe("summaries of reasoning", () => {
  const summary = { summary: "auto" }
  const refused = refusing("unsupported_value", "reasoning.summary")
  const reasoningSent = (fake: Fake.FakeUpstream, count: number) =>
    Effect.map(bodies(fake, count), (all) => all.map(({ reasoning }) => reasoning))

  check("are asked for, since reasoning has no text otherwise", function* (adapter, fake, route) {
    yield* fake.script(inOnePiece({ ...hi, reasoning: "r" }))
    assert.strictEqual((yield* adapter.complete(route, request())).reasoning, "r")
    assert.deepStrictEqual(yield* reasoningSent(fake, 1), [summary])
  })

  for (const code of ["unsupported_value", "unsupported_parameter"]) {
    check(`refused as ${code} are left out at once, and by this route from then on`, function* (adapter, fake, route) {
      const refusal = refusing(code, "reasoning.summary")
      yield* fake.script(refusal, inOnePiece(hi), inOnePiece(hi), inEvents(hi), inOnePiece(hi))
      const chatRequest = request({ reasoningEffort: "low" })
      assert.strictEqual((yield* adapter.complete(route, chatRequest)).content, "hi")
      yield* adapter.complete(route, chatRequest)
      assert.isUndefined((yield* hear(adapter, route, chatRequest)).failure)
      yield* adapter.complete({ ...route, id: "another" }, chatRequest)
      const [without, all] = [{ effort: "low" }, { effort: "low", ...summary }]
      assert.deepStrictEqual(yield* reasoningSent(fake, 5), [all, without, without, without, all])
    })
  }

  check("refused on a stream are left out of the same stream", function* (adapter, fake, route) {
    yield* fake.script(refused, inEvents(hi))
    assert.strictEqual(joined((yield* hear(adapter, route, request())).events).content, "hi")
    assert.deepStrictEqual(yield* reasoningSent(fake, 2), [summary, undefined])
  })

  check(
    "refused once more, and whatever the client asked for itself, are the request's fault",
    function* (adapter, fake, route) {
      const effort = refusing("unsupported_value", "reasoning.effort")
      yield* fake.script(refused, refused, effort, refusing("other", "reasoning.summary"))
      for (const to of [route, route, { ...route, id: "another" }]) {
        const failure = yield* Effect.flip(adapter.complete(to, request({ reasoningEffort: "low" })))
        assert.deepStrictEqual([failure.class, failure.status], ["request", 400])
      }
    }
  )

  check("may be refused with the stream itself, which then comes in one piece", function* (adapter, fake, route) {
    yield* fake.script(refusing("unsupported_value", "stream"), refused, inOnePiece(hi), inOnePiece(hi))
    for (const _ of ["first", "second"]) {
      const { events, failure } = yield* hear(adapter, route, request())
      assert.deepStrictEqual([joined(events).content, failure], ["hi", undefined])
    }
    const streams = (yield* bodies(fake, 4)).map(({ stream }) => stream)
    assert.deepStrictEqual(streams, [true, undefined, undefined, undefined])
  })
})

describe("stop sequences, which the Responses API does not know,", () => {
  const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 0, reasoning: 5 }
  const answer = { content: "One. END Two.", finish: "length", usage } as const
  const thoughtful = { ...answer, reasoning: "Hm." } as const
  const stop = ["END", "\n\n"]
  const cut = { content: "One. ", finish: "stop", usage } as const

  /** A stream that pauses after its text until it is resumed. */
  const standing = (of: Parameters<typeof wire>[0], gate: Effect.Effect<unknown>) => {
    const { end, opening, output } = wire(of)
    return Fake.sse(...opening, ...output, gate, ...end)
  }
  const readToFinish = Effect.fnUntraced(function* (pull: ChatPull, events: Array<ChatEvent> = []) {
    while (!events.some(({ type }) => type === "finish")) events.push(...(yield* pull))
    return events
  })

  check(
    "are not sent: the text is cut here, and the usage is all that the host counted",
    function* (adapter, fake, route) {
      yield* fake.script(inOnePiece(answer))
      const got = yield* adapter.complete(route, request({ stop }))
      assert.deepStrictEqual(got, { ...got, ...cut, reasoning: undefined, toolCalls: [] })
      assert.notProperty((yield* fake.received).body, "stop")
    }
  )

  check(
    "end a stream and cancel its call, where the gateway can count what was used",
    function* (adapter, fake, route) {
      yield* fake.script(standing(answer, Effect.never))
      const { events, failure } = yield* hear(adapter, route, request({ stop }))
      assert.deepStrictEqual(
        [events, failure],
        [[text(""), text("One. "), { ...finished("stop"), stopSequence: "END" }], undefined]
      )
      const { body, closed } = yield* fake.received
      assert.notProperty(body, "stop")
      yield* closed
    }
  )

  check("hold back no more than what may become one", function* (adapter, fake, route) {
    const gate = yield* Deferred.make<void>()
    const delta = (delta: string) => Fake.event({ type: "response.output_text.delta", output_index: 0, delta })
    const end = Fake.event({ type: "response.completed", response: response({}) })
    yield* fake.script(Fake.sse(delta("One. E"), Deferred.await(gate), delta("NDE"), delta("N."), end))
    const pull = yield* adapter.stream(route, request({ stop: ["ENDING"] }))
    assert.deepStrictEqual(yield* pull, [text("One. ")])
    yield* Deferred.succeed(gate, undefined)
    const events = yield* readToFinish(pull, [text("One. ")])
    assert.strictEqual(joined(events).content, "One. ENDEN.")
  })

  const image = { type: "image_url", image_url: { url: "https://x.test/a.png" } } as const
  for (const [what, of, messages] of [
    ["reasoning", thoughtful, undefined],
    ["a long prompt", answer, [{ role: "user", content: "x".repeat(5_000) }]],
    ["an image", answer, [{ role: "user", content: [image] }]]
  ] as const) {
    check(`finish a stream at once, which is read on for its usage after ${what}`, function* (adapter, fake, route) {
      const gate = yield* Deferred.make<void>()
      yield* fake.script(standing(of, Deferred.await(gate)))
      const pull = yield* adapter.stream(route, request({ stop, ...(messages && { messages }) }))
      const events = yield* readToFinish(pull)
      yield* Deferred.succeed(gate, undefined)
      events.push(...(yield* pull))
      assert.deepInclude(joined(events), cut)
      assert.deepStrictEqual(yield* Effect.flip(pull), Option.none())
    })
  }

  check("cut a stream that came in one piece as well", function* (adapter, fake, route) {
    yield* fake.script(inOnePiece(thoughtful))
    assert.deepInclude(joined((yield* hear(adapter, route, request({ stop }))).events), cut)
  })

  check("cut no reasoning", function* (adapter, fake, route) {
    const of = { content: "Two.", reasoning: "One. END of it.", finish: "stop", usage } as const
    yield* fake.script(inOnePiece(of))
    const { content, reasoning } = yield* adapter.complete(route, request({ stop }))
    assert.deepStrictEqual([content, reasoning], [of.content, of.reasoning])
  })
})
