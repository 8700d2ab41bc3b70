import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Option } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { ask } from "../harness/client/ChatClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, failpointProgram, inDeployment } from "../harness/gateway/Deployment.ts"
import { charge, either, isStream } from "../harness/upstream/ChatReplies.ts"
import type { Reply } from "../harness/upstream/FakeUpstream.ts"

interface Death {
  readonly at: "after_hold" | "before_answer" | "mid_stream" | "before_settle" | "after_settle"
  readonly stream: boolean
}

const deaths: ReadonlyArray<Death> = [
  { at: "after_hold", stream: false },
  { at: "after_hold", stream: true },
  { at: "before_answer", stream: false },
  { at: "before_answer", stream: true },
  { at: "mid_stream", stream: true },
  { at: "before_settle", stream: false },
  { at: "before_settle", stream: true },
  { at: "after_settle", stream: false },
  { at: "after_settle", stream: true }
]

/** Kills a gateway in the middle of an account's only request. */
const kill = (program: string, unanswered: ReadonlySet<boolean>, { at, stream }: Death) =>
  Effect.gen(function* () {
    const { directory, gateway } = yield* Deployment
    const { org, secret } = yield* openAccount({})
    const marker = path.join(directory, `${at}-${stream}`)
    const doomed = yield* gateway({ entry: program, env: { FAILPOINT: at, FAILPOINT_MARKER: marker } })
    const asked = yield* Effect.fork(
      Effect.option(ask({ url: doomed.url, secret, stream, text: at === "before_answer" ? "no" : "hi" }))
    )
    if (at === "before_answer") {
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 1)
      yield* eventually(
        Effect.sync(() => unanswered.has(stream)),
        (arrived) => arrived
      )
      yield* doomed.signal("SIGKILL")
    }
    assert.deepStrictEqual(yield* doomed.ended, { code: null, signal: "SIGKILL" })
    const killedAt = yield* Clock.currentTimeMillis
    if (at !== "before_answer") assert.strictEqual(existsSync(marker) && readFileSync(marker, "utf8"), at)
    const answer = yield* Fiber.join(asked)
    assert.isFalse(Option.isSome(answer) && /\[DONE\]|Hello there/.test(answer.value.text), "it was answered")
    const charges = at === "after_settle" ? [charge] : []
    const { charges: found, openHolds } = yield* moneyOf(org)
    assert.deepStrictEqual({ openHolds, found }, { openHolds: 1 - charges.length, found: charges })
    return { org, killedAt, charges }
  }).pipe(Effect.scoped)

describe("a gateway that is killed in the middle of a request", () => {
  it.live(
    "leaves no hold after 60 s, and no charge but the one that was settled",
    () =>
      Effect.gen(function* () {
        const { gateway, upstream } = yield* Deployment
        const program = yield* failpointProgram
        const unanswered = new Set<boolean>()
        const reply: Reply = (response, received) =>
          JSON.stringify(received.body).includes('"no"')
            ? void unanswered.add(isStream(received.body))
            : either(response, received)
        yield* upstream.script(...deaths.map(() => reply))
        const dead = yield* Effect.forEach(deaths, (death) => kill(program, unanswered, death), { concurrency: 3 })
        const survivor = yield* gateway()
        const released = Effect.forEach(
          dead,
          Effect.fnUntraced(function* ({ charges, killedAt, org }) {
            yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0, "60 seconds")
            assert.isBelow((yield* Clock.currentTimeMillis) - killedAt, 60_000)
            yield* assertCharged(org, charges)
          }),
          { concurrency: "unbounded" }
        )
        const survivorEnded = Effect.map(survivor.ended, (end) =>
          assert.fail(`the survivor ended: ${JSON.stringify(end)}`)
        )
        yield* Effect.raceFirst(released, survivorEnded).pipe(
          Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(survivor.stderr())))
        )
      }).pipe(inDeployment),
    180_000
  )
})
