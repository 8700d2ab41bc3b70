import { spawn } from "node:child_process"
import { Effect } from "effect"
import { callAt } from "../harness/client/HttpCalls.ts"
import { assert, describe, it } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"

/** Returns the command's output until `isEnough`, or until it ends. */
const printed = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>>,
  isEnough: (text: string) => boolean
) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn("npm", ["run", "--silent", "stripe-stand-in", "--", ...args], {
        env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...environment },
        stdio: ["ignore", "pipe", "pipe"],
        detached: true
      })
    ),
    // npm passes no signal on.
    ({ exitCode, pid }) => Effect.sync(() => void (exitCode === null && pid !== undefined && process.kill(-pid)))
  )
  return yield* Effect.async<{ readonly text: string; readonly code: number | null }>((resume) => {
    let text = ""
    const take = (chunk: unknown) => {
      text += String(chunk)
      if (isEnough(text)) resume(Effect.succeed({ text, code: null }))
    }
    child.stdout.on("data", take)
    child.stderr.on("data", take)
    child.on("close", (code) => resume(Effect.succeed({ text, code })))
  })
})

describe("npm run stripe-stand-in", () => {
  it.scopedLive("prints the settings that the gateway lacks, and serves its page", function* () {
    const port = yield* freePort
    const { text } = yield* printed(["--port", String(port)], { PORT: "4321" }, (all) =>
      all.includes("STRIPE_API_BASE")
    )
    assert.include(text, "http://127.0.0.1:4321/stripe/webhook")
    assert.match(text, /^STRIPE_SECRET_KEY=sk_test_[0-9a-f]{32}$/m)
    assert.match(text, /^STRIPE_WEBHOOK_SECRET=whsec_[0-9a-f]{32}$/m)
    assert.include(text, `\nSTRIPE_API_BASE=http://127.0.0.1:${port}\n`)
    assert.include((yield* callAt(`http://127.0.0.1:${port}/`)).text, "There are no payments")
  })

  it.scopedLive("does not run with a live key", function* () {
    const { code, text } = yield* printed([], { STRIPE_SECRET_KEY: "sk_live_1" }, () => false)
    assert.strictEqual(code, 1)
    assert.match(text, /^stripe-stand-in: STRIPE_SECRET_KEY is /)
    assert.notInclude(text, "sk_live_1")
  })
})
