import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Effect, Either, Fiber, Schedule } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import type { Answer } from "../harness/client/ChatClient.ts"
import { fetched, film, isReplay, listed, mediaIn, see, videoOf } from "../harness/client/MediaClient.ts"
import { eventually, moneyOf } from "../harness/database/Money.ts"
import { tinyClip } from "../harness/fixtures/TinyMedia.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { program } from "../harness/gateway/GatewayProcess.ts"
import { complete, earlyDeath, earlyTakeover } from "../harness/gateway/ShortTimings.ts"
import { assert, describe } from "../harness/It.ts"
import { type Call, type Fate, priceOf } from "../harness/upstream/RenderFarm.ts"
import * as Fleet from "./KilledGateways.ts"
import * as LeaseLog from "./LeaseLog.ts"
import { isOver, type VideoRow, videoRows } from "./VideoRows.ts"

const death = (at: Fleet.Death["at"], turn: number, asks = 0): Fleet.Death => ({ at, turn, asks })

/** One process after the other at each of two addresses: before any render may be over, and then. */
const early: ReadonlyArray<ReadonlyArray<Fleet.Death>> = [
  [death("after_hold", 2, 2), death("video_submitting", 2, 3), death("withheld", 1, 3), death("video_polling", 3, 12)],
  [
    death("after_hold", 1, 1),
    death("video_submitted", 1, 3),
    death("video_submitting", 3, 4),
    death("video_polling", 6, 12)
  ]
]
const late: ReadonlyArray<ReadonlyArray<Fleet.Death>> = [
  [death("video_storing", 1), death("video_stored", 1)],
  [death("video_stored", 2), death("video_storing", 2)]
]

/** What the row of a job says whose owner died there. */
const stepAt: Readonly<Record<Fleet.Death["at"], VideoRow["step"]>> = {
  after_hold: "submit",
  video_submitting: "submitting",
  withheld: "submitting",
  video_submitted: "submitting",
  video_polling: "rendering",
  video_storing: "rendering",
  video_stored: "rendering"
}

const timings = { ...earlyDeath, ...earlyTakeover }

const count = 40
const indices = Array.from({ length: count }, (_, index) => index)
const promptOf = (index: number) => `clip ${index}.`
const secondsOf = (index: number) => [4, 6, 8][index % 3] ?? 0
const keyOf = (index: number) => `key-${index}`
const isModerated = (index: number) => index % 10 === 3

/** Four jobs meet each kind of weather, whoever works on them. */
const fate = (account: string, prompt: string): Fate => {
  const index = Number(/\d+/.exec(prompt)?.[0])
  const usual = { submit: "taken", polls: 2, end: "clip" } as const
  if (isModerated(index)) return { ...usual, end: "moderation" }
  if (index % 10 === 1) return { ...usual, polls: 3, stumble: 2 }
  if (account !== "a") return usual
  if (index % 10 === 5) return { ...usual, end: "runner" }
  if (index % 10 === 7) return { ...usual, submit: "refused" }
  return index % 10 === 9 ? { ...usual, submit: "lost" } : usual
}

interface Told {
  readonly index: number
  /** Whether it heard nothing of a try. */
  readonly again: boolean
  /** How often it heard that the database is out of reach. */
  readonly refusals: number
  readonly replayed: boolean
  readonly id: string
}

/** As it may seem on a busy machine; official clients repeat that. */
const isOutOfReach = ({ headers, status }: Answer) => status === 500 && headers.has("retry-after")

/** Asks until it is told of a job: after the first time with its key, of whichever gateway there is. */
const customer = Effect.fnUntraced(function* (index: number, secret: string, mine: Fleet.Slot, other: Fleet.Slot) {
  const body = { model: "film", prompt: promptOf(index), seconds: secondsOf(index) }
  let [turn, refusals, again] = [0, 0, false]
  const ask = ({ url }: Fleet.Slot) =>
    film({ url, secret, key: keyOf(index), body }).pipe(
      Effect.tapError(() => Effect.sync(() => (again = true))),
      Effect.tap((answer) => Effect.sync(() => (refusals += isOutOfReach(answer) ? 1 : 0))),
      Effect.filterOrFail(
        (answer) => answer.status !== 409 && !isOutOfReach(answer),
        () => "repeat" as const
      )
    )
  yield* mine.permits.take(1)
  const first = yield* Effect.either(ask(mine))
  const anywhere = Effect.suspend(() => ask(turn++ % 2 === 0 ? other : mine)).pipe(
    Effect.retry(Schedule.spaced("500 millis"))
  )
  const answer = yield* Either.isRight(first) ? first : anywhere
  return { index, again, refusals, replayed: isReplay(answer), id: videoOf(answer, 202).id } satisfies Told
})

const assertEnded = (row: VideoRow, index: number) => {
  const what = `${promptOf(index)} ${JSON.stringify(row.attemptedRoutes)}`
  assert.strictEqual(row.seconds, secondsOf(index))
  if (row.status === "completed") {
    assert.isFalse(isModerated(index), what)
    assert.deepStrictEqual([row.hold, row.charges], ["settled", [priceOf(row.seconds)]], what)
    return
  }
  assert.deepStrictEqual([row.status, row.hold, row.charges], ["failed", "released", []], what)
  // Otherwise it was on its way to one route after the other when its owners died.
  if (!isModerated(index) || row.errorCode !== "content_policy_violation") {
    assert.deepStrictEqual([row.errorCode, row.attemptedRoutes], ["upstream_error", ["film@a", "film@b"]], what)
    assert.isAbove(row.uncertainSubmits, 0, what)
  }
}

const assertSubmittedOnce = (calls: ReadonlyArray<Call>) => {
  const submits = calls.filter(({ step }) => step === "submit").map(({ account, prompt }) => `${account} ${prompt}`)
  assert.deepStrictEqual(submits.toSorted(), [...new Set(submits)].toSorted())
}

describe("two gateways that are killed again and again while 40 videos are made", () => {
  deploymentTest(
    "finish every one, charge each that was made once, and submit none twice to a route",
    function* ({ env }) {
      yield* LeaseLog.keep
      const { org, secret } = yield* openAccount({ rpm: 6000 })
      let mayEnd = false
      const { farm, kill, left, right, start } = yield* Fleet.make({ fate, isOpen: () => mayEnd }, timings)
      const slots = [left, right]

      const killed = Effect.fnUntraced(function* (slot: Fleet.Slot, it: Fleet.Death) {
        const killedAt = yield* kill(slot, it)
        const rows = yield* videoRows
        const stored = [...(yield* mediaIn(env["DATA_DIR"] ?? "")).keys()].filter((name) => name.startsWith("public/"))
        if (it.at === "video_stored") {
          assert.isAbove(stored.length, rows.filter(({ status }) => status === "completed").length, "nothing stored")
        }
        return { at: it.at, killedAt }
      })
      const killAll = (all: ReadonlyArray<ReadonlyArray<Fleet.Death>>) =>
        Effect.forEach(slots, (slot, index) => Effect.forEach(all[index] ?? [], (it) => killed(slot, it)), {
          concurrency: "unbounded"
        })

      const customers = yield* Effect.fork(
        Effect.forEach(
          indices,
          (index) => (index % 2 === 0 ? customer(index, secret, left, right) : customer(index, secret, right, left)),
          { concurrency: "unbounded" }
        )
      )
      const first = yield* killAll(early)
      mayEnd = true
      const kills = [...first, ...(yield* killAll(late))].flat()
      const survivors = yield* Effect.all([start(left), start(right)], { concurrency: 2 })
      const told = yield* Fiber.join(customers)
      assert.isBelow(
        told.reduce((sum, { refusals }) => sum + refusals, 0),
        count / 4
      )
      const rows = yield* eventually(videoRows, (all) => all.every(isOver), "100 seconds").pipe(
        Effect.tapError(() => Effect.sync(() => process.stderr.write(survivors.map(({ stderr }) => stderr()).join(""))))
      )

      const takeovers = yield* LeaseLog.takeovers(complete(timings))
      for (const { waited, ...taken } of takeovers) assert.isBelow(waited, 60, JSON.stringify(taken))
      assert.lengthOf(kills, 12)
      for (const { at, killedAt } of kills) {
        const hit = takeovers.filter((taken) => taken.lapsed && taken.free <= killedAt && killedAt < taken.at)
        const orphans = hit.filter(({ step }) => step === stepAt[at]).map(({ id }) => id)
        assert.isNotEmpty(orphans, `${at} at ${killedAt.toISOString()} hit no job in flight`)
        if (at !== "after_hold") continue
        const retried = told.filter(({ id }) => orphans.includes(id))
        assert.isNotEmpty(retried, "no customer was left without an answer to its job")
        assert.isTrue(retried.every(({ again, replayed }) => again && replayed))
      }

      assert.lengthOf(rows, count)
      const byId = new Map(rows.map((row) => [row.id, row]))
      for (const { id, index } of told) {
        const row = byId.get(id) ?? assert.fail(`no ${id}`)
        assert.strictEqual(row.key, keyOf(index))
        assertEnded(row, index)
      }
      assert.strictEqual(new Set(told.map(({ id }) => id)).size, count)
      assertSubmittedOnce(farm.calls)
      const completed = rows.filter(({ status }) => status === "completed")
      assert.isAbove(completed.length, count / 2)
      const rest = 100_000_000_000n - completed.reduce((sum, { seconds }) => sum + priceOf(seconds), 0n)
      const { charges, ...money } = yield* moneyOf(org)
      assert.lengthOf(charges, completed.length)
      assert.deepStrictEqual(money, { balance: rest, held: 0n, entries: rest, openHolds: 0 })
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [program, "ledger", "verify", "--json"], { env })
      )
      assert.deepInclude(JSON.parse(stdout), { violations: [] })

      for (const { url } of slots) {
        const videos = yield* listed({ url, secret })
        assert.sameMembers(
          videos.map(({ id, status }) => `${id} ${status}`),
          rows.map(({ id, status }) => `${id} ${status}`)
        )
      }
      for (const { id, index } of told.filter((one) => byId.get(one.id)?.status === "completed")) {
        const video = videoOf(yield* see({ url: right.url, secret }, `/${id}`))
        const { bytes } = yield* fetched(video.url ?? "")
        assert.isTrue(bytes.equals(tinyClip(promptOf(index))), `another clip: ${promptOf(index)}`)
      }
    },
    300_000
  )
})
