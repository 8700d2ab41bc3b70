import { readFileSync } from "node:fs"
import { Cause, Effect } from "effect"
import { withoutOwnSpans } from "../src/Launch.ts"
import { openAccount } from "./harness/client/Account.ts"
import { ask } from "./harness/client/ChatClient.ts"
import { eventually } from "./harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "./harness/gateway/Deployment.ts"
import { builtFiles } from "./harness/gateway/GatewayProcess.ts"
import { assert, describe, it } from "./harness/It.ts"

/** Where `planted` is thrown. */
const planted = readFileSync("test/harness/gateway/FaultyProgram.ts", "utf8")
  .split("\n")
  .findIndex((line) => line.includes("throw new TypeError"))
const place = `test/harness/gateway/FaultyProgram.ts:${planted + 1}:`

describe("positions in the built program", () => {
  deploymentTest("are named by their source when a request fails unexpectedly", function* ({ gateway }) {
    const entry = yield* faultyProgram
    for (const format of ["json", "pretty"]) {
      const { stderr, url } = yield* gateway({ entry, env: { LOG_FORMAT: format, PLANTED_ERROR: "true" } })
      const { secret } = yield* openAccount({})
      const { status } = yield* ask({ url, secret, stream: false, text: "hi" })
      assert.strictEqual(status, 500)
      const log = yield* eventually(Effect.sync(stderr), (text) => text.includes("TypeError: planted"))
      assert.include(log, place)
      assert.notMatch(log, /\.js:\d+:\d+/)
    }
  })

  deploymentTest("are named by their source when an error ends the process", function* ({ gateway }) {
    const { ended, signal, stderr } = yield* gateway({
      entry: yield* faultyProgram,
      env: { PLANTED_ERROR: "true" }
    })
    yield* signal("SIGUSR2")
    assert.strictEqual((yield* ended).code, 1)
    assert.match(stderr(), new RegExp(`TypeError: planted\n +at .*${place}`))
  })
})

it("the built program is ASCII, of which V8 needs one byte a character", () => {
  for (const file of builtFiles()) {
    const at = readFileSync(file).findIndex((byte) => byte > 0x7f)
    assert.strictEqual(at, -1, `${file} at ${at}`)
  }
})

describe("the stack trace of a defect", () => {
  it.effect("has the named method as a frame, although no span is made", function* () {
    const ask = Effect.fn("Service.ask")(() => Effect.die(new Error("no table")))
    const cause = yield* Effect.flip(Effect.sandbox(Effect.provide(ask(), withoutOwnSpans)))
    assert.match(Cause.pretty(cause), /at Service\.ask \(.*StackTraces\.slow\.test\.ts/)
  })
})
