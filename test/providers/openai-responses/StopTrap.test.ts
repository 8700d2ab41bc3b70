import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Option } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, finished, inOnePiece, said, text } from "./support.ts"
import { response, streamed, whole, written } from "./wire.ts"

const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 0, reasoning: 5 }
const answer = { content: "One. END Two.", finish: "length", usage } as const
const stop = ["END", "\n\n"]
const thoughtful = { ...answer, reasoning: "Hm." } as const

/** A stream that stands still once its text is written, until it is let go on. */
const standing = (of: ReturnType<typeof whole>, gate: Effect.Effect<unknown>) => {
  const { end, opening, output } = streamed(of)
  const all = written([...opening, ...output, ...end])
  return Fake.sse(...all.slice(0, -1), gate, ...all.slice(-1))
}

describe("B / stop", () => {
  check("is not sent: the text is cut here, and the usage is all that the host counted", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(inOnePiece(answer))
      const got = yield* adapter.complete(route, request({ stop }))
      assert.deepStrictEqual(got, {
        content: "One. ",
        reasoning: undefined,
        toolCalls: [],
        finish: "stop",
        usage
      })
      assert.notProperty((yield* fake.received).body, "stop")
    })
  )

  check("ends a stream and cancels its call, where the gateway can count what was used", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(standing(whole(answer), Effect.never))
      const heard = yield* hear(adapter, route, request({ stop }))
      assert.deepStrictEqual(heard, said(text(""), text("One. "), finished("stop")))
      const { body, closed } = yield* fake.received
      assert.notProperty(body, "stop")
      yield* closed
    })
  )

  check("holds back no more than what may become a stop sequence", (adapter, fake, route) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const delta = (delta: string) => Fake.event({ type: "response.output_text.delta", output_index: 0, delta })
      const end = Fake.event({ type: "response.completed", response: response({}) })
      yield* fake.script(Fake.sse(delta("One. E"), Deferred.await(gate), delta("NDE"), delta("N."), end))
      const pull = yield* adapter.stream(route, request({ stop: ["ENDING"] }))
      assert.deepStrictEqual(yield* pull, [text("One. ")])
      yield* Deferred.succeed(gate, undefined)
      const rest = [...(yield* pull)]
      while (!rest.some(({ type }) => type === "finish")) rest.push(...(yield* pull))
      assert.strictEqual(joined([text("One. "), ...rest]).content, "One. ENDEN.")
    })
  )

  const hidden = [
    ["reasoning", thoughtful, request({ stop })],
    ["a long prompt", answer, request({ stop, messages: [{ role: "user", content: "x".repeat(5_000) }] })],
    [
      "a picture",
      answer,
      request({
        stop,
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] }]
      })
    ]
  ] as const
  for (const [what, of, asked] of hidden) {
    check(`finishes a stream at once, and reads it on for its usage after ${what}`, (adapter, fake, route) =>
      Effect.gen(function* () {
        const gate = yield* Deferred.make<void>()
        yield* fake.script(standing(whole(of), Deferred.await(gate)))
        const pull = yield* adapter.stream(route, asked)
        const events = [...(yield* pull)]
        while (!events.some(({ type }) => type === "finish")) events.push(...(yield* pull))
        yield* Deferred.succeed(gate, undefined)
        events.push(...(yield* pull))
        const { content, finish, usage: got } = joined(events)
        assert.deepStrictEqual([content, finish, got], ["One. ", "stop", usage])
        assert.deepStrictEqual(yield* Effect.flip(pull), Option.none())
      })
    )
  }

  check("cuts a stream that came in one piece as well", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(inOnePiece(thoughtful))
      const { content, finish, usage: got } = joined((yield* hear(adapter, route, request({ stop }))).events)
      assert.deepStrictEqual([content, finish, got], ["One. ", "stop", usage])
    })
  )

  check("cuts no reasoning", (adapter, fake, route) =>
    Effect.gen(function* () {
      const of = { content: "Two.", reasoning: "One. END of it.", finish: "stop", usage } as const
      yield* fake.script(inOnePiece(of))
      assert.deepInclude(yield* adapter.complete(route, request({ stop })), {
        content: "Two.",
        reasoning: of.reasoning
      })
    })
  )
})
