import { SqlClient } from "@effect/sql"
import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { draw, imageOf, isReplay, price } from "../harness/client/ImageClient.ts"
import { assertCharged, eventually } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { after } from "../harness/upstream/ChatReplies.ts"
import { gif, painting, paints } from "../harness/upstream/ImageReplies.ts"

const Ids = Schema.decodeUnknown(Schema.Array(Schema.Struct({ id: Schema.String })))

const instances = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(sql`SELECT id FROM instances WHERE stopped_at IS NULL AND swept_at IS NULL`, Ids)
)

const lookDead = (id: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE instances SET beat_at = now() - interval '46 seconds' WHERE id = ${id}`
  )

describe("a gateway that stood still over an image until it was taken for dead", () => {
  deploymentTest("leaves the key and the charge to whoever has made it meanwhile", function* ({ gateway, upstream }) {
    const log = yield* RequestLog
    const frozen = yield* gateway()
    const [before] = yield* instances
    const awake = yield* gateway()
    const { org, secret } = yield* openAccount({})
    const ask = (url: string) => draw({ url, secret, key: "k", more: { response_format: "b64_json" } })
    const answer = yield* Deferred.make<void>()
    yield* upstream.script(after(Deferred.await(answer), paints(gif)), paints(painting))
    const late = yield* Effect.fork(Effect.option(ask(frozen.url)))
    yield* upstream.received
    yield* frozen.signal("SIGSTOP")
    yield* lookDead(before?.id ?? "")

    const made = yield* ask(awake.url)
    assert.deepStrictEqual([imageOf(made).b64_json, isReplay(made)], [painting.toString("base64"), false])
    yield* Deferred.succeed(answer, undefined)
    yield* frozen.signal("SIGCONT")
    yield* Fiber.join(late)
    const rows = yield* eventually(log.list({ org, limit: 10 }), ({ length }) => length === 2)
    assert.deepStrictEqual(
      rows.map(({ charge }) => charge).toSorted((a, b) => Number(a - b)),
      [0n, price]
    )
    for (const { url } of [frozen, awake]) {
      const replay = yield* eventually(ask(url), ({ status }) => status === 200)
      assert.deepStrictEqual([replay.text, isReplay(replay)], [made.text, true])
    }
    yield* assertCharged(org, [price])
  })
})
