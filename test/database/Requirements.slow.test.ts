import { Effect } from "effect"
import * as Pg from "pg"
import { Cli, failure } from "../cli/Cli.ts"
import { emptyUrl, emptyUrlIn, freshUrl } from "../harness/database/Postgres.ts"
import { startPooler } from "../harness/database/TransactionPooler.ts"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const ask = (url: string, statement: string) =>
  Effect.promise(async () => {
    const client = new Pg.Client(url)
    await client.connect()
    return client.query<Record<string, unknown>>(statement).finally(() => client.end())
  })

const tables = (url: string) =>
  Effect.map(ask(url, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"), ({ rows }) => rows)

/** The lines that `gateway migrate`, `gateway doctor` and a start give as the reason. */
const refusals = Effect.fnUntraced(function* (url: string) {
  const DATA_DIR = yield* temporaryDirectory
  const environment = { DATABASE_URL: url, SANDBOX: "true", DATA_DIR, PORT: "0" }
  const { run } = yield* Cli
  const migrate = yield* failure(["migrate"], environment)
  const examined = yield* run(["doctor"], environment)
  assert.strictEqual(examined.code, 1)
  const started = yield* Effect.flip(start({ env: environment }))
  assert.include(started.message, `gateway: ${migrate}\n`)
  const problems = examined.stdout.split("\n").filter((line) => line.startsWith("problem"))
  assert.deepStrictEqual(
    problems.map((line) => line.split(/\s{2,}/)),
    [["problem", "database", migrate]]
  )
  return migrate
})

withLayer(Cli.layer)("a gateway does not start", (it) => {
  it.scoped("on a database that is not in UTF-8", function* () {
    for (const encoding of ["SQL_ASCII", "LATIN1"]) {
      const url = yield* emptyUrlIn(encoding)
      assert.match(
        yield* refusals(url),
        new RegExp(`^The database "test_\\w+" has the encoding ${encoding}, .*ENCODING 'UTF8'`)
      )
      assert.deepStrictEqual(yield* tables(url), [])
    }
  })

  it.scoped("behind a pooler that lends a session for one transaction", function* () {
    const direct = yield* emptyUrl
    assert.include(yield* refusals(yield* startPooler(direct)), "set pool_mode = session in PgBouncer")
    assert.deepStrictEqual(yield* tables(direct), [])
    assert.include(yield* refusals(yield* startPooler(yield* freshUrl)), "set pool_mode = session in PgBouncer")
  })

  it.scoped("if its role may not create tables", function* () {
    const url = yield* emptyUrl
    const role = `${new URL(url).pathname.slice(1)}_role`
    yield* Effect.acquireRelease(ask(url, `CREATE ROLE ${role}`), () => ask(url, `DROP ROLE ${role}`))
    const limited = new URL(url)
    limited.searchParams.set("options", `-crole=${role}`)
    const { run } = yield* Cli
    const environment = { DATABASE_URL: limited.href, SANDBOX: "true", DATA_DIR: yield* temporaryDirectory, PORT: "0" }
    const refusal = `The role "${role}" may not create tables in the schema "public". As the owner of the database: GRANT CREATE ON SCHEMA "public" TO "${role}".`
    assert.strictEqual(yield* failure(["migrate"], environment), refusal)
    assert.include((yield* Effect.flip(start({ env: environment }))).message, `gateway: ${refusal}\n`)
    yield* ask(url, `GRANT CREATE ON SCHEMA public TO ${role}`)
    assert.strictEqual((yield* run(["migrate"], environment)).code, 0)
    yield* ask(url, `DROP OWNED BY ${role}`)
  })

  it.scoped("if the triggers of the ledger are disabled", function* () {
    const url = yield* emptyUrl
    const name = new URL(url).pathname.slice(1)
    yield* ask(url, `ALTER ROLE CURRENT_USER IN DATABASE ${name} SET session_replication_role = replica`)
    assert.include(yield* refusals(url), "session_replication_role = replica, which disables the triggers")
  })
})
