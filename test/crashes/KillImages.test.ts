import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Option } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { codeOf } from "../harness/client/ChatClient.ts"
import { type AskedImage, draw, editForm, imageOf, isReplay, mediaIn, price } from "../harness/client/ImageClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, failpointProgram, inDeployment } from "../harness/gateway/Deployment.ts"
import type { Received, Reply } from "../harness/upstream/FakeUpstream.ts"
import { painting, paints } from "../harness/upstream/ImageReplies.ts"

interface Death {
  readonly at: "after_hold" | "before_answer" | "before_settle" | "after_settle"
  readonly form: "link" | "bytes" | "edit"
}

const deaths: ReadonlyArray<Death> = [
  { at: "after_hold", form: "link" },
  { at: "before_answer", form: "edit" },
  { at: "before_settle", form: "link" },
  { at: "before_settle", form: "bytes" },
  { at: "after_settle", form: "bytes" },
  { at: "after_settle", form: "edit" }
]

const nameOf = ({ at, form }: Death) => `${at}-${form}`

/** The same request each time that it is asked for. */
const asking = (death: Death, secret: string): Omit<AskedImage, "url"> => {
  const prompt = nameOf(death)
  const ask = { secret, prompt, key: "the-key" }
  switch (death.form) {
    case "link":
      return ask
    case "bytes":
      return { ...ask, more: { response_format: "b64_json" } }
    case "edit":
      return { ...ask, form: editForm(painting, { prompt }) }
  }
}

/** How often the provider was asked for each, and an answer to each but the first that shall have none. */
const watching = () => {
  const calls = new Map<string, number>()
  const deathOf = ({ bytes }: Received) =>
    deaths.map(nameOf).find((name) => bytes.includes(name)) ?? assert.fail("nobody's request")
  const reply: Reply = (response, received) => {
    const name = deathOf(received)
    const count = (calls.get(name) ?? 0) + 1
    calls.set(name, count)
    return name.startsWith("before_answer") && count === 1 ? undefined : paints()(response, received)
  }
  return { reply, callsFor: (death: Death) => calls.get(nameOf(death)) ?? 0 }
}

/** Kills a gateway in the middle of an account's only request. */
const kill = (program: string, callsFor: (death: Death) => number, death: Death) =>
  Effect.gen(function* () {
    const { at } = death
    const { directory, gateway } = yield* Deployment
    const { org, secret } = yield* openAccount({})
    const marker = path.join(directory, nameOf(death))
    const doomed = yield* gateway({ entry: program, env: { FAILPOINT: at, FAILPOINT_MARKER: marker } })
    const asked = yield* Effect.fork(Effect.option(draw({ url: doomed.url, ...asking(death, secret) })))
    if (at === "before_answer") {
      yield* eventually(
        Effect.sync(() => callsFor(death)),
        (calls) => calls === 1
      )
      yield* doomed.signal("SIGKILL")
    }
    assert.deepStrictEqual(yield* doomed.ended, { code: null, signal: "SIGKILL" })
    const killedAt = yield* Clock.currentTimeMillis
    if (at !== "before_answer") assert.strictEqual(existsSync(marker) && readFileSync(marker, "utf8"), at)
    assert.isTrue(Option.isNone(yield* Fiber.join(asked)), "it was answered")
    const charges = at === "after_settle" ? [price] : []
    assert.strictEqual(callsFor(death), at === "after_hold" ? 0 : 1)
    const { charges: found, openHolds } = yield* moneyOf(org)
    assert.deepStrictEqual({ openHolds, found }, { openHolds: 1 - charges.length, found: charges })
    return { death, org, secret, killedAt, charges }
  }).pipe(Effect.scoped)

type Dead = Effect.Effect.Success<ReturnType<typeof kill>>

/** The key's owner asks again and again, as clients do, until the survivor serves it. */
const retry = Effect.fnUntraced(function* (url: string, { death, killedAt, secret }: Dead) {
  while (true) {
    const answer = yield* draw({ url, ...asking(death, secret) })
    assert.isBelow((yield* Clock.currentTimeMillis) - killedAt, 60_000, nameOf(death))
    if (answer.status === 200) return answer
    assert.deepStrictEqual([answer.status, codeOf(answer)], [409, "idempotency_conflict"])
    yield* Effect.sleep("500 millis")
  }
})

describe("a gateway that is killed in the middle of an image", () => {
  it.live(
    "charges at most once, and its keys serve a retry within 60 s: a replay where it had settled, else anew",
    () =>
      Effect.gen(function* () {
        const { env, gateway, upstream } = yield* Deployment
        const program = yield* failpointProgram
        const { callsFor, reply } = watching()
        yield* upstream.script(...deaths.flatMap(() => [reply, reply, reply]))
        const dead = yield* Effect.forEach(deaths, (death) => kill(program, callsFor, death), { concurrency: 3 })
        const survivor = yield* gateway()

        const checked = Effect.forEach(
          dead,
          Effect.fnUntraced(function* (one) {
            const { charges, death, org } = one
            const answer = yield* retry(survivor.url, one)
            const isSettled = charges.length === 1
            assert.strictEqual(isReplay(answer), isSettled, nameOf(death))
            assert.strictEqual(callsFor(death), death.at === "after_hold" || isSettled ? 1 : 2)
            const again = yield* draw({ url: survivor.url, ...asking(death, one.secret) })
            assert.deepStrictEqual([again.text, isReplay(again)], [answer.text, true])
            const { b64_json, url = "" } = imageOf(answer)
            const stored = yield* mediaIn(env["DATA_DIR"] ?? "")
            const bytes =
              b64_json === undefined ? stored.get(url.replace(/^.*\/media\//, "")) : Buffer.from(b64_json, "base64")
            assert.isTrue(bytes?.equals(painting), nameOf(death))
            yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0, "60 seconds")
            assert.isBelow((yield* Clock.currentTimeMillis) - one.killedAt, 60_000)
            yield* assertCharged(org, [price])
          }),
          { concurrency: "unbounded" }
        )
        const survivorEnded = Effect.map(survivor.ended, (end) =>
          assert.fail(`the survivor ended: ${JSON.stringify(end)}`)
        )
        yield* Effect.raceFirst(checked, survivorEnded).pipe(
          Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(survivor.stderr())))
        )
      }).pipe(inDeployment),
    180_000
  )
})
