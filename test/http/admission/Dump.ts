import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"

const Names = Schema.Array(Schema.Struct({ name: Schema.String }))
const Texts = Schema.Array(Schema.Struct({ text: Schema.NullOr(Schema.String) }))

/** Every row of every table, as text. */
export const dump = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* Effect.flatMap(
    sql`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
    Schema.decodeUnknown(Names)
  )
  const texts = yield* Effect.forEach(tables, ({ name }) =>
    Effect.flatMap(
      sql`SELECT string_agg(rows::text, E'\n') AS text FROM ${sql(name)} AS rows`,
      Schema.decodeUnknown(Texts)
    )
  )
  return texts
    .flat()
    .map(({ text }) => text ?? "")
    .join("\n")
})
