import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { Clock, Effect, Fiber, Option } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import { openAccount } from "../harness/client/Account.ts"
import { agentWays, type ChatApi, chatApis } from "../harness/client/ChatApis.ts"
import { type Answer, ask, type ConnectionBroke, codeOf } from "../harness/client/ChatClient.ts"
import { draw, editForm, imageOf, isReplay, mediaIn, price } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually, moneyOf, waitUntil } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { earlyDeath as timings } from "../harness/gateway/ShortTimings.ts"
import { assert, describe } from "../harness/It.ts"
import type { Received, Reply } from "../harness/upstream/FakeUpstream.ts"
import { charge, either, painting, paints } from "../harness/upstream/Replies.ts"

/** A kill at a failpoint, or before the provider has answered. */
interface Death {
  readonly at: "after_hold" | "before_answer" | "mid_stream" | "before_settle" | "after_settle"
  readonly form: "json" | "stream" | "link" | "bytes" | "edit"
  readonly way?: ChatApi
}

/** A customer whose only request was cut by a kill. */
interface Dead {
  readonly death: Death
  readonly org: OrgId
  readonly secret: string
  /** When somebody who could see that it is dead was there. */
  readonly since: number
  readonly isSettled: boolean
}

interface Surface {
  readonly deaths: ReadonlyArray<Death>
  readonly price: bigint
  readonly reply: Reply
  /** The same request each time that it is asked for. */
  readonly ask: (death: Death, url: string, secret: string) => Effect.Effect<Answer, ConnectionBroke>
  readonly isAnswer: (answer: Answer) => boolean
  /** Asks the survivor for what was cut, and returns the charges that there are to be. */
  readonly retry: (
    dead: Dead,
    url: string,
    calls: () => number
  ) => Effect.Effect<ReadonlyArray<bigint>, ConnectionBroke, Deployment>
}

const nameOf = ({ at, form, way }: Death) => [at, form, ...(way?.path.match(/\w+/g) ?? [])].join("-")

const chat: Surface = {
  deaths: [
    { at: "after_hold", form: "json" },
    { at: "after_hold", form: "stream" },
    { at: "before_answer", form: "json" },
    { at: "before_answer", form: "stream" },
    { at: "mid_stream", form: "stream" },
    { at: "before_settle", form: "json" },
    { at: "before_settle", form: "stream" },
    { at: "after_settle", form: "json" },
    { at: "after_settle", form: "stream" },
    ...agentWays.flatMap(
      (way): ReadonlyArray<Death> => [
        { at: "mid_stream", form: "stream", way },
        { at: "before_settle", form: "json", way }
      ]
    )
  ],
  price: charge,
  reply: either,
  ask: (death, url, secret) =>
    ask({ url, secret, stream: death.form === "stream", text: nameOf(death), way: death.way }),
  isAnswer: ({ text }) => text.includes("Hello there") || chatApis.some(({ whole }) => whole.test(text)),
  retry: ({ isSettled }) => Effect.succeed(isSettled ? [charge] : [])
}

const drawing = (death: Death, url: string, secret: string) => {
  const asked = { url, secret, prompt: nameOf(death), key: "the-key" }
  if (death.form === "edit") return draw({ ...asked, form: editForm(painting, { prompt: nameOf(death) }) })
  return draw({ ...asked, more: death.form === "bytes" ? { response_format: "b64_json" } : {} })
}

const image: Surface = {
  deaths: [
    { at: "after_hold", form: "link" },
    { at: "before_answer", form: "edit" },
    { at: "before_settle", form: "link" },
    { at: "before_settle", form: "bytes" },
    { at: "after_settle", form: "bytes" },
    { at: "after_settle", form: "edit" }
  ],
  price,
  reply: paints(),
  ask: drawing,
  isAnswer: () => true,
  retry: Effect.fnUntraced(function* ({ death, isSettled, secret, since }, url, calls) {
    const { env } = yield* Deployment
    const again = drawing(death, url, secret)
    let answer = yield* again
    while (answer.status !== 200) {
      assert.deepStrictEqual([answer.status, codeOf(answer)], [409, "idempotency_conflict"])
      yield* Effect.sleep("500 millis")
      answer = yield* again
      assert.isBelow((yield* Clock.currentTimeMillis) - since, 60_000, nameOf(death))
    }
    assert.strictEqual(isReplay(answer), isSettled, nameOf(death))
    assert.strictEqual(calls(), death.at === "after_hold" || isSettled ? 1 : 2)
    const replay = yield* again
    assert.deepStrictEqual([replay.text, isReplay(replay)], [answer.text, true])
    const { b64_json, url: link = "" } = imageOf(answer)
    const stored = yield* mediaIn(env["DATA_DIR"] ?? "")
    const bytes =
      b64_json === undefined ? stored.get(link.replace(/^.*\/media\//, "")) : Buffer.from(b64_json, "base64")
    assert.isTrue(bytes?.equals(painting), nameOf(death))
    return [price]
  })
}

/** How often the provider was asked for each, and a reply to each but the first that is to have none. */
const counting = ({ deaths, reply: answer }: Surface) => {
  const calls = new Map<string, number>()
  // Some names begin others.
  const names = deaths.map(nameOf).toSorted((a, b) => b.length - a.length)
  const reply: Reply = (response, received: Received) => {
    const name = names.find((one) => received.bytes.includes(one)) ?? assert.fail("nobody's request")
    const count = (calls.get(name) ?? 0) + 1
    calls.set(name, count)
    return name.startsWith("before_answer") && count === 1 ? undefined : answer(response, received)
  }
  return { reply, callsFor: (death: Death) => calls.get(nameOf(death)) ?? 0 }
}

/** Kills a gateway in the middle of an account's only request. */
const kill = (surface: Surface, callsFor: (death: Death) => number, death: Death) =>
  Effect.gen(function* () {
    const { at } = death
    const { directory, gateway } = yield* Deployment
    const { org, secret } = yield* openAccount({})
    const marker = path.join(directory, nameOf(death))
    const doomed = yield* gateway({ timings, env: { FAILPOINT: at, FAILPOINT_MARKER: marker } })
    const asked = yield* Effect.fork(Effect.option(surface.ask(death, doomed.url, secret)))
    if (at === "before_answer") {
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 1)
      yield* waitUntil(() => callsFor(death) === 1)
      yield* doomed.signal("SIGKILL")
    }
    assert.deepStrictEqual(yield* doomed.ended, { code: null, signal: "SIGKILL" })
    if (at !== "before_answer") assert.strictEqual(existsSync(marker) && readFileSync(marker, "utf8"), at)
    const answer = yield* Fiber.join(asked)
    assert.isFalse(Option.exists(answer, surface.isAnswer), "it was answered")
    assert.strictEqual(callsFor(death), at === "after_hold" ? 0 : 1)
    const isSettled = at === "after_settle"
    const { charges, openHolds } = yield* moneyOf(org)
    assert.deepStrictEqual(
      { openHolds, charges },
      isSettled ? { openHolds: 0, charges: [surface.price] } : { openHolds: 1, charges: [] }
    )
    return { death, org, secret, isSettled }
  }).pipe(Effect.scoped)

const killedGateways = (surface: Surface) =>
  function* ({ gateway, upstream }: Deployment["Type"]) {
    const { callsFor, reply } = counting(surface)
    yield* upstream.script(...surface.deaths.flatMap(() => [reply, reply, reply]))
    const dead = yield* Effect.forEach(surface.deaths, (death) => kill(surface, callsFor, death), {
      concurrency: 3
    })
    const survivor = yield* gateway({ timings })
    const since = yield* Clock.currentTimeMillis
    const released = Effect.forEach(
      dead,
      Effect.fnUntraced(function* (one) {
        const charges = yield* surface.retry({ ...one, since }, survivor.url, () => callsFor(one.death))
        yield* eventually(moneyOf(one.org), ({ openHolds }) => openHolds === 0, "60 seconds")
        assert.isBelow((yield* Clock.currentTimeMillis) - since, 60_000)
        yield* assertCharged(one.org, charges)
      }),
      { concurrency: "unbounded" }
    )
    const survivorEnded = Effect.map(survivor.ended, (end) => assert.fail(`the survivor ended: ${JSON.stringify(end)}`))
    yield* Effect.raceFirst(released, survivorEnded).pipe(
      Effect.tapErrorCause(() => Effect.sync(() => process.stderr.write(survivor.stderr())))
    )
  }

describe("a gateway that is killed in the middle of a request", () => {
  deploymentTest("leaves no hold after 60 s, and no charge but the one that was settled", killedGateways(chat), 180_000)

  deploymentTest(
    "charges an image at most once, and its key serves a retry within 60 s: a replay where it was settled, else anew",
    killedGateways(image),
    180_000
  )
})
