import { Effect } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { called, hear, joined, request } from "./ChatHarness.ts"
import { type ChatWire, type RawCall, record } from "./ChatHosts.ts"
import { counted, scenarios } from "./ChatScenarios.ts"

/** Shapes that hosts give arguments in, and what the client gets. */
const readable: ReadonlyArray<readonly [unknown, string]> = [
  [{ a: 1 }, '{"a":1}'],
  ['{"a":1}', '{"a":1}'],
  [{}, "{}"],
  ["", "{}"],
  [null, "{}"],
  [undefined, "{}"]
]

const unreadable: ReadonlyArray<unknown> = [7, true, [1], Fake.deep]

const callsContract = (wire: ChatWire, { answer, isText }: RawCall) => {
  const { check, noAnswers } = scenarios(wire)

  for (const [given, expected] of readable) {
    check(`a call's arguments ${JSON.stringify(given)} are ${expected}`, function* (adapter, fake, route) {
      const { body, events } = answer(given)
      yield* fake.script(Fake.json(200, body), Fake.sse(...events))
      const whole = yield* adapter.complete(route, request())
      const heard = yield* hear(adapter, route, request())
      assert.isUndefined(heard.failure)
      for (const { toolCalls } of [whole, joined(heard.events)]) {
        assert.deepStrictEqual(toolCalls, [called("call_a", "f", expected)])
      }
    })
  }

  for (const given of isText ? unreadable : [...unreadable, "no JSON", "[1]"]) {
    const { body, events } = answer(given)
    const name = `a call whose arguments are ${JSON.stringify(given)}`
    noAnswers([[name, body]])
    check(`${name} breaks a stream`, function* (adapter, fake, route) {
      yield* fake.script(Fake.sse(...events))
      const heard = yield* hear(adapter, route, request())
      assert.strictEqual(heard.failure?.class, "retry")
      assert.isFalse(heard.events.some(({ type }) => type === "tool_call" || type === "finish"))
    })
  }
}

/** What hosts of any wire answer now and then, whatever its documentation says. */
export const oddAnswersContract = (wire: ChatWire) =>
  describe(`an odd answer of ${wire.adapter}`, () => {
    const { answers, check, noAnswers } = scenarios(wire)
    const { body } = wire.encode({ content: "Hello", finish: "stop" })
    const beside = (error: unknown) => ({ ...record(body), error })

    noAnswers([
      ["an output beside an error as a text", beside("boom")],
      ["an output beside an error", beside({ message: "boom" })],
      ["an output beside an error of 20,000 levels", beside(Fake.deep)]
    ])
    answers([["an output beside an error that is null is an answer", beside(null), { content: "Hello" }]])

    if (wire.countedError !== undefined) {
      const usage = { prompt: 21, completion: 13, cached: 0, cacheWrite: 0, reasoning: 0 }
      const { body, event } = wire.countedError({ finish: "stop", usage })
      check("an error that counts what failed tells it", function* (adapter, fake, route) {
        yield* fake.script(Fake.json(200, body), Fake.sse(event))
        const failure = yield* Effect.flip(adapter.complete(route, request()))
        const { events, failure: streamed } = yield* hear(adapter, route, request())
        assert.deepStrictEqual([failure.spent, streamed?.spent, events], [usage, usage, [counted(usage)]])
      })
    }

    if (wire.rawCall !== undefined) callsContract(wire, wire.rawCall)
    else if (wire.has.features.includes("tools")) it("has a rawCall", () => assert.fail("a wire with tools needs one"))
  })
