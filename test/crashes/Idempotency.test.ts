import { Deferred, Effect } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, codeOf, get } from "../harness/client/ChatClient.ts"
import { assertLinked, draw, imageOf, isReplay, mediaIn, price } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually, times } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { after, painting, paints } from "../harness/upstream/Replies.ts"

const two = Effect.flatMap(Deployment, ({ gateway }) =>
  Effect.all([gateway(), gateway()], { concurrency: "unbounded" })
)

const rows = (org: OrgId, count: number) =>
  Effect.flatMap(RequestLog, (log) =>
    eventually(log.list(OrganizationScope.all, { org, limit: 200 }), (all) => all.length === count)
  )

/** Requests that have reached the provider and were not looked at. */
const asked = Effect.fnUntraced(function* () {
  const { upstream } = yield* Deployment
  let count = 0
  while ((yield* Effect.timeoutOption(upstream.received, "100 millis"))._tag === "Some") count += 1
  return count
})

const forms = [
  { what: "link", more: {} },
  { what: "bytes", more: { response_format: "b64_json" } },
  { what: "edit", more: { image: painting.toString("base64"), response_format: "b64_json" } }
]

describe("an image asked for again with its key", () => {
  deploymentTest(
    "is the first one to the byte and free, in whatever form, from any process, after a restart",
    function* ({ env, gateway, upstream }) {
      const PORT = String(yield* freePort)
      const first = yield* gateway({ env: { PORT } })
      const second = yield* gateway({ env: { PUBLIC_URL: first.url } })
      const { org, secret } = yield* openAccount({ rpm: 20 })
      const revised = { revised_prompt: "a grey cat\u0000 \ud83d" }
      yield* upstream.script(...[...forms, "unkept"].map(() => paints(painting, revised)))

      const made = new Map<string, Answer>()
      for (const { more, what } of forms) {
        const answer = yield* draw({ url: first.url, secret, key: what, more })
        assert.isFalse(isReplay(answer))
        imageOf(answer)
        made.set(what, answer)
      }
      assert.strictEqual(made.get("link")?.headers.get("x-ratelimit-remaining"), "19")
      // Nobody can ask for this one again, so it is stored for nobody.
      imageOf(yield* draw({ url: second.url, secret, more: { response_format: "b64_json" } }))
      const stored = yield* mediaIn(env["DATA_DIR"] ?? "")
      const isPublic = (name: string) => name.startsWith("public/")
      assert.deepStrictEqual([stored.size, [...stored.keys()].filter(isPublic).length], [3, 1])

      const assertReplayed = Effect.fnUntraced(function* (url: string) {
        for (const { more, what } of forms) {
          const again = yield* draw({ url, secret, key: what, more })
          assert.strictEqual(again.text, made.get(what)?.text)
          assert.strictEqual(again.status, 200)
          assert.isTrue(isReplay(again), what)
        }
      })
      yield* assertReplayed(first.url)
      yield* assertReplayed(second.url)
      yield* first.signal("SIGTERM")
      assert.deepStrictEqual(yield* first.ended, { code: 0, signal: null })
      const third = yield* gateway({ env: { PORT } })
      yield* assertReplayed(third.url)
      yield* assertLinked(imageOf(made.get("link") ?? assert.fail("no link")).url ?? "", painting)
      for (const name of stored.keys()) {
        const { status } = yield* get(`${third.url}/media/${name}`)
        assert.strictEqual(status, isPublic(name) ? 200 : 404, name)
      }

      assert.strictEqual(yield* asked(), forms.length + 1)
      yield* assertCharged(
        org,
        [...forms, "unkept"].map(() => price)
      )
      const [last, ...others] = (yield* rows(org, 4 * forms.length + 1)).filter(({ notes }) =>
        notes.includes("replayed")
      )
      assert.lengthOf(others, 3 * forms.length - 1)
      assert.deepInclude<unknown>(last, { status: 200, code: null, charge: 0n, cost: null, route: null, attempts: [] })
      const { headers } = yield* draw({ url: third.url, secret, key: "link" })
      assert.strictEqual(headers.get("x-ratelimit-remaining"), String(20 - 4 * forms.length - 2))
    }
  )

  deploymentTest("fifty times at once on two processes is made once and paid once", function* ({ upstream }) {
    const gateways = yield* two
    const { org, secret } = yield* openAccount({})
    const fifty = (key: string, each: (answer: Answer) => Effect.Effect<unknown>) =>
      Effect.forEach(
        times(50),
        (index) => Effect.tap(draw({ url: gateways[index % 2]?.url ?? "", secret, key }), each),
        { concurrency: "unbounded" }
      )

    const refused = yield* Deferred.make<void>()
    let conflicts = 0
    yield* upstream.script(after(Effect.timeoutOption(Deferred.await(refused), "20 seconds"), paints()))
    const answers = yield* fifty("held", ({ status }) =>
      Effect.suspend(() => {
        if (status === 409) conflicts += 1
        return conflicts === 49 ? Deferred.succeed(refused, undefined) : Effect.void
      })
    )
    const [made, ...more] = answers.filter(({ status }) => status === 200)
    assert.deepStrictEqual([conflicts, more.length], [49, 0])
    for (const answer of answers.filter(({ status }) => status === 409)) {
      assert.strictEqual(codeOf(answer), "idempotency_conflict")
      assert.strictEqual(answer.headers.get("x-should-retry"), "false")
    }
    const replays = yield* fifty("held", () => Effect.void)
    assert.isTrue(replays.every((answer) => isReplay(answer) && answer.text === made?.text))

    // The same without any order: whoever comes late enough is given what the first one got.
    yield* upstream.script(paints())
    const race = yield* fifty("raced", () => Effect.void)
    const served = race.filter(({ status }) => status === 200)
    assert.isTrue(race.every(({ status }) => status === 200 || status === 409))
    assert.lengthOf(
      served.filter((answer) => !isReplay(answer)),
      1
    )
    assert.lengthOf([...new Set(served.map(({ text }) => text))], 1)

    assert.strictEqual(yield* asked(), 2)
    yield* assertCharged(org, [price, price])
  })
})
