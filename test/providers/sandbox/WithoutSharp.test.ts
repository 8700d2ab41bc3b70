import { Effect } from "effect"
import { vi } from "vitest"
import { make } from "../../../src/providers/sandbox/Sandbox.ts"
import * as TokensFake from "../../fakes/TokensFake.ts"
import { assert, it } from "../../harness/It.ts"
import { asks, request, route } from "./Sandbox.ts"
import { draw, failureOf, poll, submit } from "./SandboxMedia.ts"

vi.mock("sharp", () => {
  throw new Error("no native library for this machine")
})

it.effect("a machine that cannot load sharp has no pictures, and gets an error that says why", function* () {
  for (let time = 0; time < 2; time++) {
    const failure = yield* failureOf(draw({}))
    assert.strictEqual(failure.class, "retry")
    assert.match(failure.detail, /^sandbox: .*sharp.* could not be loaded: /)
  }
})

it.effect("all that needs no picture is served there", function* () {
  const { chat } = yield* Effect.provide(make, TokensFake.layer)
  const answer = yield* Effect.flatMap(Effect.fromNullable(chat), (own) =>
    own.complete(route(), request({ messages: asks("Hello") }))
  )
  assert.include(answer.content, "Hello")
  assert.deepStrictEqual(yield* poll(yield* submit({})), { state: "queued" })
})
