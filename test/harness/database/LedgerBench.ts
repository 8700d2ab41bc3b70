import { SqlClient } from "@effect/sql"
import { Effect, Layer, Schema } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"

const Amounts = Schema.decodeUnknown(Schema.Array(Schema.Struct({ amount: Schema.BigInt })))

/** Arranges and looks at accounts in PostgreSQL, beside the ledger under test. */
export const layer = Layer.effect(
  LedgerBench,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const books = yield* LedgerAdmin
    const ids = yield* Ids
    return LedgerBench.of({
      organization: (balance) =>
        Effect.gen(function* () {
          const org = OrgId.make(ids.prefixed("org"))
          const key = KeyId.make(ids.prefixed("key"))
          yield* sql`INSERT INTO organizations (id, name, balance) VALUES (${org}, ${org}, ${balance})`
          yield* sql`INSERT INTO api_keys (id, org_id, hash) VALUES (${key}, ${org}, decode(md5(${key}), 'hex'))`
          if (balance !== 0n) {
            yield* sql`INSERT INTO ledger_entries (org_id, kind, amount) VALUES (${org}, 'adjustment', ${balance})`
          }
          return { org, key }
        }).pipe(Effect.orDie),
      cap: (key, amount, period) =>
        Effect.orDie(Effect.asVoid(sql`UPDATE api_keys SET cap = ${amount}, cap_period = ${period} WHERE id = ${key}`)),
      charges: (org) =>
        sql`SELECT -amount AS amount FROM ledger_entries WHERE org_id = ${org} AND kind = 'charge' ORDER BY id`.pipe(
          Effect.flatMap(Amounts),
          Effect.map((rows) => rows.map(({ amount }) => amount)),
          Effect.orDie
        ),
      openHolds: (org) =>
        Effect.map(
          Effect.orDie(sql`SELECT id FROM holds WHERE org_id = ${org} AND state = 'open'`),
          (rows) => rows.length
        ),
      proved: Effect.map(books.verify, ({ violations }) => violations.length === 0)
    })
  })
)
