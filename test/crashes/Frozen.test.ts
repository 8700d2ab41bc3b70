import { SqlClient } from "@effect/sql"
import { Deferred, Duration, Effect, Fiber, Schema } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { sweep } from "../../src/services/ledger/HoldSweeper.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { ask } from "../harness/client/ChatClient.ts"
import { draw, imageOf, isReplay, price } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { gif } from "../harness/fixtures/TinyMedia.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { after, charge, completion, painting, paints } from "../harness/upstream/Replies.ts"
import { chatUnderWay } from "./ChatsUnderWay.ts"

const Beats = Schema.decodeUnknown(Schema.Array(Schema.Struct({ id: Schema.String, beatAt: Schema.DateFromSelf })))

const instances = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(sql`SELECT id, beat_at FROM instances WHERE stopped_at IS NULL AND swept_at IS NULL`, Beats)
)

const lookDead = (id: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE instances SET beat_at = now() - interval '46 seconds' WHERE id = ${id}`
  )

const onlyInstance = Effect.map(instances, ([first]) => first ?? assert.fail("no instance"))

describe.concurrent("a gateway that stood still until it was taken for dead", () => {
  deploymentTest(
    "settles nothing that was given back meanwhile, and goes on under a new identity",
    function* ({ gateway, upstream }) {
      const log = yield* RequestLog
      const { signal, url } = yield* gateway()
      const { org, secret } = yield* openAccount({})
      const before = yield* onlyInstance

      const { answer, chat: asked } = yield* chatUnderWay({ url, secret })
      // Just after a heartbeat there are seconds until the next, which would see what happened and end the request.
      const isBefore = ({ id }: { readonly id: string }) => id === before.id
      yield* eventually(instances, (all) => (all.find(isBefore)?.beatAt ?? before.beatAt) > before.beatAt)
      yield* signal("SIGSTOP")
      yield* lookDead(before.id)
      assert.strictEqual(yield* sweep, 1)
      assert.deepInclude(yield* moneyOf(org), { openHolds: 0, charges: [] })
      yield* signal("SIGCONT")
      yield* answer

      assert.strictEqual((yield* Fiber.join(asked)).status, 200)
      yield* assertCharged(org, [])
      const [row] = yield* eventually(log.list(OrganizationScope.all, { org, limit: 1 }), (rows) => rows.length === 1)
      assert.deepStrictEqual([row?.status, row?.charge, row?.notes], [200, 0n, ["hold_lost"]])

      yield* eventually(instances, (all) => all.length === 1 && !all.some(isBefore))
      yield* upstream.script(completion)
      assert.strictEqual((yield* ask({ url, secret })).status, 200)
      yield* assertCharged(org, [charge])
    }
  )

  deploymentTest(
    "charges nothing for an answer that came while it stood still, whatever it finds first",
    function* ({ gateway, upstream }) {
      const timings = { heartbeatEvery: Duration.seconds(2), sweepEvery: Duration.seconds(1) }
      const [frozen, awake] = yield* Effect.all([gateway({ timings }), gateway({ timings })])
      const { org, secret } = yield* openAccount({})
      const answer = yield* Deferred.make<void>()
      yield* upstream.script(...Array.from({ length: 5 }, () => after(Deferred.await(answer), completion)))
      const asked = yield* Effect.forEach(Array.from({ length: 5 }), () =>
        Effect.fork(ask({ url: frozen.url, secret }))
      )
      yield* Effect.replicateEffect(upstream.received, 5)
      yield* frozen.signal("SIGSTOP")
      for (const { id } of yield* instances) yield* lookDead(id)
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
      yield* Deferred.succeed(answer, undefined)
      yield* Effect.sleep("2 seconds")
      yield* frozen.signal("SIGCONT")
      for (const { status } of yield* Effect.forEach(asked, Fiber.join)) assert.oneOf(status, [200, 503])
      yield* assertCharged(org, [])

      yield* upstream.script(...Array.from({ length: 200 }, () => completion))
      yield* eventually(ask({ url: frozen.url, secret }), ({ status }) => status === 200)
      assert.strictEqual((yield* ask({ url: awake.url, secret })).status, 200)
      yield* assertCharged(org, [charge, charge])
    }
  )

  deploymentTest(
    "leaves an image's key and charge to the gateway that has made it meanwhile",
    function* ({ gateway, upstream }) {
      const log = yield* RequestLog
      const frozen = yield* gateway()
      const before = yield* onlyInstance
      const awake = yield* gateway()
      const { org, secret } = yield* openAccount({})
      const ask = (url: string) => draw({ url, secret, key: "k", more: { response_format: "b64_json" } })
      const answer = yield* Deferred.make<void>()
      yield* upstream.script(after(Deferred.await(answer), paints(gif)), paints(painting))
      const late = yield* Effect.fork(Effect.option(ask(frozen.url)))
      yield* upstream.received
      yield* frozen.signal("SIGSTOP")
      yield* lookDead(before.id)

      const made = yield* ask(awake.url)
      assert.deepStrictEqual([imageOf(made).b64_json, isReplay(made)], [painting.toString("base64"), false])
      yield* Deferred.succeed(answer, undefined)
      yield* frozen.signal("SIGCONT")
      yield* Fiber.join(late)
      const rows = yield* eventually(log.list(OrganizationScope.all, { org, limit: 10 }), ({ length }) => length === 2)
      assert.deepStrictEqual(
        rows.map(({ charge }) => charge).toSorted((a, b) => Number(a - b)),
        [0n, price]
      )
      for (const { url } of [frozen, awake]) {
        const replay = yield* eventually(ask(url), ({ status }) => status === 200)
        assert.deepStrictEqual([replay.text, isReplay(replay)], [made.text, true])
      }
      yield* assertCharged(org, [price])
    }
  )
})
