import path from "node:path"
import { Duration, Effect, Exit, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { chatPath, postTo } from "../harness/client/HttpCalls.ts"
import { ageHeartbeats, assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, either } from "../harness/upstream/Replies.ts"

const deaths = [
  { at: "after_hold", stream: false },
  { at: "mid_stream", stream: true },
  { at: "before_settle", stream: false },
  { at: "after_settle", stream: true }
] as const

/** Less than what the full cap costs, 16 million nano-USD. */
const credits = 5_000_000n

/** Kills a gateway in the middle of a chat with a lower cap, behind which another waits that needs most of the balance. */
const kill = (program: string, { at, stream }: (typeof deaths)[number]) =>
  Effect.gen(function* () {
    const { directory, gateway } = yield* Deployment
    const { org, secret } = yield* openAccount({ nanoUsd: credits, canReduceHold: true })
    const marker = path.join(directory, `fitted-${at}`)
    const doomed = yield* gateway({ entry: program, env: { FAILPOINT: at, FAILPOINT_MARKER: marker } })
    const ask = (text: string) =>
      Effect.exit(
        postTo(
          `${doomed.url}${chatPath}`,
          { secret },
          {
            model: "m1",
            max_tokens: 8_000,
            stream,
            messages: [{ role: "user", content: text }]
          }
        )
      )
    const asked = yield* Effect.fork(Effect.all([ask("hi"), ask("x".repeat(2_700))], { concurrency: "unbounded" }))
    assert.deepStrictEqual(yield* doomed.ended, { code: null, signal: "SIGKILL" })
    yield* Fiber.join(asked)
    const { balance, charges, held, openHolds } = yield* moneyOf(org)
    assert.isAtMost(Number(held), Number(balance))
    if (openHolds > 0) assert.isBelow(Number(held) / openHolds, 16_000_000)
    return { org, charges }
  }).pipe(Effect.scoped)

describe("a gateway that is killed while it runs chats with lower caps", () => {
  deploymentTest(
    "leaves books that balance, and no hold after 60 s",
    function* ({ gateway, upstream }) {
      const program = yield* faultyProgram
      yield* upstream.script(...deaths.flatMap(() => [either, either, either]))
      const dead = yield* Effect.forEach(deaths, (death) => kill(program, death), { concurrency: 2 })
      assert.isTrue(dead.every(({ charges }) => charges.every((amount) => amount === charge)))
      const survivor = yield* gateway({ timings: { sweepEvery: Duration.seconds(1) } })
      yield* ageHeartbeats
      yield* Effect.forEach(
        dead,
        Effect.fnUntraced(function* ({ charges, org }) {
          yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
          yield* assertCharged(org, charges, credits)
        }),
        { concurrency: "unbounded" }
      )
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Effect.promise(() => fetch(`${survivor.url}/healthz`)))))
    },
    180_000
  )
})
