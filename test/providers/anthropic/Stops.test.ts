import { assert, describe } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { begun, check, counted, ends, heard, opens, says, stopped } from "./support.ts"
import { wire } from "./Wire.ts"

describe("a stop sequence of white space, which the wire has none for", () => {
  const start = [begun({ input_tokens: 5 }), opens(0, { type: "text", text: "" }), says(0, "One\n"), says(0, "\nTwo")]
  const given = { stop: ["\n\n"] }

  heard(
    "cuts the text, and reads no further where the gateway can count it",
    start,
    ({ events, failure }) => {
      assert.isUndefined(failure)
      const usage = { prompt: 5, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0 }
      assert.deepInclude(joined(events), { content: "One", finish: "stop", usage })
    },
    given
  )

  heard(
    "reads on for the usage of a model that has thought",
    [...start, ends("end_turn", { usage: { output_tokens: 50 } }), stopped],
    ({ events }) => {
      assert.strictEqual(joined(events).content, "One")
      assert.deepStrictEqual(events.at(-1), counted({ prompt: 5, completion: 50 }))
    },
    { ...given, reasoningEffort: "high" }
  )

  check("cuts a whole answer", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.json(200, wire({ content: "One\n\nTwo", finish: "length" }).body))
      const answer = yield* adapter.complete(route, request(given))
      assert.deepInclude(answer, { content: "One", finish: "stop" })
    })
  )

  check("lets go of the call", (adapter, fake, route) =>
    Effect.gen(function* () {
      const gone = yield* Deferred.make<void>()
      yield* fake.script((response, received) => {
        response.on("close", () => Deferred.unsafeDone(gone, received.closed))
        return Fake.sse(...start, Effect.never)(response, received)
      })
      assert.isUndefined((yield* hear(adapter, route, request(given))).failure)
      yield* Deferred.await(gone)
    })
  )
})
