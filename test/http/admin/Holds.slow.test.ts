import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Duration, Effect, Fiber, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { OpenHold } from "../../../src/services/ledger/OpenHolds.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, chat, post, talk } from "../../harness/client/HttpCalls.ts"
import { eventually, lock } from "../../harness/database/Money.ts"
import { holdOne } from "../../harness/database/Rows.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { maxStall } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"

const gateway = Served.layer(
  Effect.succeed({
    env: { SANDBOX: "true" },
    timings: { settleWithin: maxStall, sweepEvery: Duration.seconds(1) }
  })
)

const model = "gemini-3.6-flash"
const film = post("/v1/videos")

const Holds = Schema.Struct({ data: Schema.Array(Schema.encodedSchema(OpenHold)) })

/** A customer, and what the admin API lists of its holds. */
const prepared = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { token } = yield* hire("write")
  const customer = yield* Served.customer()
  const admin = adminAt(url, token)
  const holds = Effect.map(
    admin(`/ledger/holds?organization=${customer.org}`),
    (answer) => Schema.decodeUnknownSync(Holds)(read(answer)).data
  )
  return { ...customer, customer, admin, holds, sql: yield* SqlClient.SqlClient }
})

/** The database has a hold a moment before the process that runs its request can tell of it. */
const showsRequest = (open: (typeof Holds.Type)["data"]) => open.some((hold) => hold.model === model)

/** A hold of an instance of its own. */
const holdOfInstance = Effect.fnUntraced(function* ({ key, org }: Pick<Served.Customer, "key" | "org">) {
  const sql = yield* SqlClient.SqlClient
  const [instance, id] = [randomUUID(), randomUUID()]
  yield* sql`INSERT INTO instances (id) VALUES (${instance})`
  yield* runWith(sql, HoldSql.place(instance, [{ id, org, key, amount: NanoUsd(5n), rateLimit: undefined }]))
  return { instance, id }
})

withLayer(gateway)("open holds at the admin API", (it) => {
  it.scoped("a request that runs is told by the process that runs it, until it is settled", function* () {
    const { admin, customer, holds, key, org } = yield* prepared
    yield* Effect.orDie((yield* ApiKeys).update(OrganizationScope.all, key, { name: "backend" }))
    const requestId = `running-${randomUUID()}`
    const headers = { "x-request-id": requestId }
    const asked = chat(customer, talk(model, "[sandbox delay=8000] hi"), { headers })
    const answer = yield* Effect.forkScoped(asked)
    const [hold] = yield* eventually(holds, (open) => open.length === 1 && showsRequest(open))
    const { data: instances } = read(yield* admin("/instances"))
    assert.deepInclude(hold, {
      org,
      org_name: read(yield* admin(`/organizations/${org}`)).name,
      key_id: key,
      key_name: "backend",
      model,
      surface: "chat",
      request_id: requestId,
      state: "open",
      waits_for: "request",
      instance: instances[0].id,
      video: null
    })
    assert.match(hold?.detail ?? "", /^A request runs on (\S+:\d+|instance \S+)\.$/)
    assert.isAbove(hold?.amount_usd ?? 0, 0)
    assert.isAtLeast(hold?.age_seconds ?? -1, 0)
    assert.strictEqual((yield* Fiber.join(answer)).status, 200)
    assert.deepStrictEqual(yield* eventually(holds, ({ length }) => length === 0), [])
    assert.strictEqual((yield* Served.logged(requestId)).id, hold?.id)
  })

  it.scoped("a video tells its state, its model and its request while it is made", function* () {
    const { admin, customer, holds } = yield* prepared
    const wanted = { model: "veo-3.1-fast-generate-001", prompt: "[sandbox delay=8000] Waves", seconds: 4 }
    const headers = { "x-request-id": `film-${randomUUID()}` }
    const answer = yield* Effect.forkScoped(film(customer, wanted, { headers }))
    const [submitted] = yield* eventually(holds, ([hold]) => hold?.detail.includes("submitting") === true)
    assert.deepInclude(submitted, {
      model: wanted.model,
      surface: "video",
      request_id: headers["x-request-id"],
      waits_for: "video",
      instance: null,
      detail: "The video is queued: submitting to a provider."
    })
    const { id } = read(yield* Fiber.join(answer), 202)
    const [rendering] = yield* eventually(holds, ([hold]) => hold?.detail.includes("rendering at") === true)
    assert.deepInclude(rendering, { id: submitted?.id ?? "", video: id, waits_for: "video" })
    read(yield* admin(`/videos/${id}/cancel`, { method: "POST" }))
    assert.deepStrictEqual(yield* holds, [])
  })

  it.scoped(
    "holds of dead instances and refunds wait while a lock is on the organization",
    function* () {
      const own = yield* prepared
      const { customer, holds, org, sql } = own
      const silent = yield* holdOfInstance(own)
      const dead = yield* holdOfInstance(own)
      const stopped = yield* holdOfInstance(own)
      const orphan = yield* holdOne(own, 1n)
      const lost = randomUUID()
      yield* sql`INSERT INTO open_holds (id, org_id, key_id, amount, instance_id)
        VALUES (${lost}, ${org}, ${own.key}, 5, gen_random_uuid())`
      yield* sql`UPDATE organizations SET held = held + 5 WHERE id = ${org}`
      const asked = chat(customer, talk(model, "[sandbox delay=8000] hi"))
      const answer = yield* Effect.forkScoped(asked)
      const placed = yield* eventually(holds, (open) => open.length === 6 && showsRequest(open))
      const { unlock } = yield* lock(org)
      const beatAgo = (seconds: number, id: string) =>
        sql`UPDATE instances SET beat_at = now() - ${seconds} * interval '1 second' WHERE id = ${id}`
      yield* beatAgo(20, silent.instance)
      yield* beatAgo(60, dead.instance)
      yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${stopped.instance}`
      const found = new Map((yield* holds).map((hold) => [hold.id, hold]))
      const waitOf = (id: string) => found.get(id)?.waits_for
      assert.deepStrictEqual(
        [waitOf(silent.id), waitOf(dead.id), waitOf(stopped.id), waitOf(orphan), waitOf(lost)],
        ["request", "sweep", "sweep", "nothing", "nothing"]
      )
      assert.match(
        found.get(silent.id)?.detail ?? "",
        new RegExp(`^A request runs on instance ${silent.instance}\\. The last`)
      )
      assert.deepInclude(found.get(dead.id), { instance: dead.instance, model: null, surface: null, request_id: null })
      assert.match(
        found.get(dead.id)?.detail ?? "",
        /has had no heartbeat for \d+(\.\d)? s\. The hold is released within seconds/
      )
      assert.match(found.get(stopped.id)?.detail ?? "", /has stopped\. The hold is released within seconds/)

      const request = placed.find(({ model: of }) => of === model)
      const requested = Effect.map(holds, (now) => now.find(({ id }) => id === request?.id))
      const waiting = yield* eventually(requested, (hold) => hold?.waits_for === "refund", "60 seconds")
      assert.include(waiting?.detail, "is retried until the database confirms it")
      assert.strictEqual((yield* Fiber.join(answer)).status, 500)
      yield* unlock
      const left = yield* eventually(
        holds,
        (now) => now.every(({ waits_for: wait }) => wait === "nothing"),
        "60 seconds"
      )
      assert.sameMembers(
        left.map(({ id }) => id),
        [orphan, lost]
      )
    },
    180_000
  )

  it.scoped("are filtered by age, and downloaded as the pages have them", function* () {
    const own = yield* prepared
    const { admin, holds, org, sql } = own
    const [old, young] = [yield* holdOne(own, 1_000_000_001n), yield* holdOne(own, 2n)]
    yield* sql`UPDATE holds SET created_at = now() - interval '1 hour' WHERE id = ${old}`
    const listed = yield* holds
    assert.deepStrictEqual(
      listed.map(({ id }) => id),
      [old, young]
    )
    assert.isAtLeast(listed[0]?.age_seconds ?? 0, 3600)
    const ids = (query: string) =>
      Effect.map(admin(`/ledger/holds?organization=${org}&${query}`), (answer) =>
        Schema.decodeUnknownSync(Holds)(read(answer)).data.map(({ id }) => id)
      )
    assert.deepStrictEqual(yield* ids("older_than=30m"), [old])
    assert.deepStrictEqual(yield* ids("older_than=2h"), [])
    assert.deepStrictEqual(yield* ids("older_than=999999999w"), [])
    const csv = yield* admin(`/ledger/holds.csv?organization=${org}&older_than=30m`)
    assert.include(csv.headers.get("content-disposition") ?? "", "holds.csv")
    const [head = "", ...lines] = csv.text.split("\r\n").slice(0, -1)
    assert.deepStrictEqual(head.split(","), Object.keys(OpenHold.fields))
    assert.lengthOf(lines, 1)
    assert.match(lines[0] ?? "", new RegExp(`^${old},${org},.*,1\\.000000001,open,.*,nothing,`))
    assert.lengthOf((yield* admin(`/ledger/holds.csv?organization=${org}`)).text.trim().split("\r\n"), 3)
    const wrong = "`older_than` must be a duration such as 90s, 30m, 1h, 7d or 2w."
    assertRefused(yield* admin("/ledger/holds?older_than=2026-01-01"), badRequest(wrong, "older_than"))
  })
})
