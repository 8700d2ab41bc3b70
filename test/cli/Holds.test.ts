import { randomUUID } from "node:crypto"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer } from "effect"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import * as HoldSql from "../../src/services/ledger/HoldSql.ts"
import { OpenHold } from "../../src/services/ledger/OpenHolds.ts"
import { RefundJournal } from "../../src/services/ledger/Refunds.ts"
import { runWith } from "../../src/services/sql/SqlStatement.ts"
import * as DiskRefundJournal from "../../src/storage/DiskRefundJournal.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, list, misuse, text } from "./Cli.ts"
import { customer, suite } from "./Operator.ts"

/** A customer with a hold of an instance that runs, of one that died, and of a video. */
const prepared = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { keyId, name, org } = yield* customer()
  const owner = { org: OrgId.make(org), key: KeyId.make(keyId) }
  const [running, dead] = [randomUUID(), randomUUID()]
  yield* sql`INSERT INTO instances (id, beat_at) VALUES (${running}, now() + interval '1 hour'), (${dead}, now())`
  yield* sql`INSERT INTO instance_catalogs (instance_id, host, pid, generation, fingerprint, models)
    VALUES (${running}, 'gw-1', 4711, 1, 'abc', 2)`
  const place = Effect.fnUntraced(function* (instance: string | null, amount: bigint) {
    const hold = { id: randomUUID(), ...owner, amount: NanoUsd(amount), rateLimit: undefined }
    yield* runWith(sql, HoldSql.place(instance, [hold]))
    return hold.id
  })
  const [request, orphan, job] = [yield* place(running, 1_500_000_001n), yield* place(dead, 2n), yield* place(null, 3n)]
  yield* sql`UPDATE instances SET beat_at = now() - interval '50 seconds' WHERE id = ${dead}`
  const video = `vid_${randomUUID()}`
  yield* sql`
    INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, deadline)
    VALUES (${video}, ${org}, ${keyId}, ${job}, 'req_film', 'framed', 5, 3, '', now() + interval '1 hour')`
  yield* sql`UPDATE holds SET created_at = now() - interval '1 hour' WHERE id = ${job}`
  return { ...owner, name, keyId, running, request, orphan, job, video }
})

withLayer(suite)("gateway holds", (it) => {
  it.effect("lists what is held, oldest first, and what each hold waits for", function* () {
    const { job, key, name, org, orphan, request, running, video } = yield* prepared
    const holds = yield* list("holds", "--org", name)
    assert.deepStrictEqual(
      holds.map(({ id, waits_for }) => [id, waits_for]),
      [
        [job, "video"],
        [request, "request"],
        [orphan, "sweep"]
      ]
    )
    const about = { org, org_name: name, key_id: key, key_name: "", state: "open" }
    assert.deepInclude(holds[0], {
      ...about,
      model: "framed",
      surface: "video",
      request_id: "req_film",
      instance: null,
      video,
      detail: "The video is queued: not yet submitted to a provider."
    })
    assert.deepInclude(holds[1], {
      ...about,
      model: null,
      surface: null,
      request_id: null,
      amount_usd: 1.500000001,
      instance: running,
      video: null,
      detail: "A request runs on gw-1:4711."
    })
    assert.isAtLeast(Number(holds[0]?.["age_seconds"]), 3600)
    assert.isTrue(Number.isInteger(holds[0]?.["created_at"]))
    const table = yield* text("holds", "--org", org)
    assert.match(table, /^CREATED_AT +AGE_SECONDS +ORG_NAME +AMOUNT_USD +WAITS_FOR +DETAIL /)
    assert.match(table, /1\.500000001 +request +A request runs on gw-1:4711\./)
    assert.lengthOf(yield* list("holds", "--limit", "1", "--org", name), 1)
  })

  it.effect("leaves out young ones, and prints CSV", function* () {
    const { job, name } = yield* prepared
    const [old, ...others] = yield* list("holds", "--org", name, "--older-than", "30m")
    assert.deepStrictEqual([old?.["id"], others], [job, []])
    const [head = "", ...lines] = (yield* text("holds", "--org", name, "--csv")).trimEnd().split("\n")
    assert.deepStrictEqual(head.split(","), Object.keys(OpenHold.fields))
    assert.lengthOf(lines, 3)
    assert.include(lines[0], `${job},`)
    assert.strictEqual(yield* text("holds", "--org", name, "--older-than", "2w"), "There are no open holds.\n")
    assert.include(yield* misuse(["holds", "--older-than", "soon"]), "--older-than must be a duration such as 90s")
    assert.include(yield* failure(["holds", "--org", "nobody"]), "nobody")
  })

  it.scoped("tells by the journal of a gateway on the same data which request waits for its refund", function* () {
    const { key, name, org, request } = yield* prepared
    const { directory } = yield* Cli
    const layer = DiskRefundJournal.layer({ directory: path.join(directory, ".data", "refunds") })
    const journal = Context.get(yield* Layer.build(layer), RefundJournal)
    const waits = Effect.map(list("holds", "--org", name), (holds) => holds.map(({ waits_for }) => waits_for))
    yield* journal.add({ hold: request, org, key })
    assert.deepStrictEqual(yield* waits, ["video", "refund", "sweep"])
    yield* journal.remove(request)
    assert.deepStrictEqual(yield* waits, ["video", "request", "sweep"])
  })
})
