import { Effect } from "effect"
import { vi } from "vitest"
import { assert, it } from "../../harness/It.ts"
import { plain } from "./PictureSamples.ts"
import { draw, failureOf, submit } from "./SandboxMedia.ts"

vi.mock("node:module", () => ({
  createRequire: () => ({
    resolve: () => {
      throw new Error("Cannot find module")
    }
  })
}))

const reference = plain("#00ff00")

it.effect("an installation without the decoder fails edits with an error that says why", function* () {
  const requests = [Effect.asVoid(draw({ references: [reference] })), Effect.asVoid(submit({ reference }))]
  for (const request of requests) {
    const failure = yield* failureOf(request)
    assert.strictEqual(failure.class, "retry")
    assert.match(failure.detail, /^sandbox: references cannot be decoded: Error: Cannot find module$/)
  }
})

it.effect("an installation without the decoder draws what has no reference", function* () {
  yield* draw({})
  yield* submit({})
})
