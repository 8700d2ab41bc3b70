import { SqlClient } from "@effect/sql"
import { Effect, Layer, Struct } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import type { RequestEntry } from "../../../src/services/requests/RequestEntry.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const entry = (org: OrgId, more: Partial<RequestEntry>) =>
  Effect.map(
    Ids,
    (ids): RequestEntry => ({
      id: ids.uuid(),
      requestId: "r",
      at: 1_700_000_000_000,
      surface: "chat",
      status: 200,
      code: null,
      org,
      key: KeyId.make("key"),
      model: "m",
      route: "m@a",
      provider: "a",
      stream: false,
      attempts: [],
      notes: [],
      usage: undefined,
      hold: undefined,
      charge: 1n,
      cost: undefined,
      firstByteMs: 1,
      totalMs: 2,
      ...more
    })
  )

const written = Effect.fnUntraced(function* (
  org: OrgId,
  entries: ReadonlyArray<Partial<RequestEntry>>,
  expected: number
) {
  const log = yield* RequestLog
  yield* Effect.forEach(entries, (more) => Effect.flatMap(entry(org, more), log.write))
  return yield* eventually(
    log.list(OrganizationScope.all, { org, limit: 100 }),
    (rows) => rows.length >= expected,
    "5 seconds"
  )
})

withLayer(RequestLog.layer.pipe(Layer.provideMerge(Postgres.layer)))("the request log", (it) => {
  it.effect("takes a cost of any size", function* () {
    const [row] = yield* written(OrgId.make("dear"), [{ cost: 10n ** 30n }], 1)
    assert.strictEqual<bigint | null | undefined>(row?.cost, 2n ** 63n - 1n)
    const failed = { route: "m@a", provider: "a", outcome: "retry", status: 200, ms: 1 }
    const attempts = [{ ...failed, cost: 10n ** 30n }, { ...failed, cost: 7n }, failed]
    const [tried] = yield* written(OrgId.make("tried"), [{ attempts }], 1)
    assert.deepStrictEqual(tried?.attempts.map(Struct.get("cost")), [NanoUsd(2n ** 63n - 1n), NanoUsd(7n), undefined])
  })

  it.effect("waits for a database that is away longer than a restart takes", function* () {
    const sql = yield* SqlClient.SqlClient
    const log = yield* RequestLog
    yield* sql`ALTER TABLE request_log RENAME TO away`
    const patient = OrgId.make("patient")
    yield* Effect.flatMap(entry(patient, {}), log.write)
    yield* Effect.sleep("9 seconds")
    yield* sql`ALTER TABLE away RENAME TO request_log`
    assert.lengthOf(yield* written(patient, [{}], 2), 2)
  })

  it.effect("loses only the row that the table refuses", function* () {
    const rows = yield* written(
      OrgId.make("odd"),
      [{ totalMs: 1 }, { totalMs: 2 ** 40 }, { totalMs: 3 }, { totalMs: 4 }],
      3
    )
    assert.sameMembers(rows.map(Struct.get("totalMs")), [1, 3, 4])
  })
})
