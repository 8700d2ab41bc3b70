import { SqlClient } from "@effect/sql"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Database } from "../src/database/Database.ts"
import * as Postgres from "./harness/database/Postgres.ts"
import * as GatewayProcess from "./harness/gateway/GatewayProcess.ts"

const tablesOf = (url: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`).pipe(
    Effect.provide(Database.layerUrl(Redacted.make(url), {}))
  )

/** What a start that fails says on its way out. */
const refusal = (env: Readonly<Record<string, string>>) =>
  Effect.map(Effect.flip(GatewayProcess.start({ env })), ({ message }) => message)

describe("a gateway with DATABASE_URL", () => {
  it.scopedLive("and no credential stops unless SANDBOX=true, with the database untouched", () =>
    Effect.gen(function* () {
      const url = yield* Postgres.emptyUrl
      assert.match(
        yield* refusal({ DATABASE_URL: url }),
        /ended with 1:\ngateway: No model can be served: .*SANDBOX=true/
      )
      assert.deepStrictEqual(yield* tablesOf(url), [])

      const { stdout } = yield* GatewayProcess.start({ env: { DATABASE_URL: url, SANDBOX: "true" } })
      assert.match(stdout(), /The SANDBOX answers/)
      assert.notMatch(stdout(), /ggw_/)
      assert.isNotEmpty(yield* tablesOf(url))
    })
  )

  it.scopedLive("and a catalog that it cannot serve leaves the database untouched", () =>
    Effect.gen(function* () {
      const url = yield* Postgres.emptyUrl
      const said = yield* refusal({ DATABASE_URL: url, SANDBOX: "true", CATALOG_FILE: "package.json" })
      assert.match(said, /ended with 1:\ngateway: .*package\.json:\d+: /)
      assert.deepStrictEqual(yield* tablesOf(url), [])
    })
  )
})
