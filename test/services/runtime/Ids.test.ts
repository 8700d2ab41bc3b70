import { Effect } from "effect"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("ids", () => {
  it.effect("are UUIDs of version 7, in the order of the milliseconds in which they were made", function* () {
    const ids = yield* Ids
    const before = Date.now()
    const first = ids.uuid()
    assert.match(first, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const made = Number.parseInt(first.replace("-", "").slice(0, 12), 16)
    assert.isAtLeast(made, before)
    assert.isAtMost(made, Date.now())
    yield* Effect.promise(() => new Promise((resume) => setTimeout(resume, 3)))
    assert.isTrue(first < ids.uuid())
  })

  it.effect("are made once each, and stand behind their prefix", function* () {
    const ids = yield* Ids
    const made = Array.from({ length: 10_000 }, () => ids.prefixed("req"))
    assert.strictEqual(new Set(made).size, made.length)
    for (const id of made) assert.match(id, /^req_[0-9a-f]{32}$/)
    assert.match(ids.prefixed("chatcmpl"), /^chatcmpl-[0-9a-f]{32}$/)
  })
})
