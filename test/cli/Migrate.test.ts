import { functionFiles } from "../database/schema/Schema.ts"
import { oldUrl, outstanding } from "../harness/database/OldDatabase.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli } from "./Cli.ts"

const last = outstanding.at(-1)?.slice(0, 4)

const started = `gateway: info: Upgrading the database from 0044: ${outstanding.length} migrations\n`

withLayer(Cli.layer)("gateway migrate", (it) => {
  it.scoped("prints the start of an upgrade on stderr and its end on stdout", function* () {
    const { run } = yield* Cli
    assert.deepStrictEqual(yield* run(["migrate"], { DATABASE_URL: yield* oldUrl() }), {
      code: 0,
      stdout: `Upgraded the database from 0044 to ${last} (${outstanding.length} migrations).\n`,
      stderr: started
    })
  })

  it.scoped("prints only the document on stdout with --json", function* () {
    const { run } = yield* Cli
    const { stdout } = yield* run(["migrate", "--json"], { DATABASE_URL: yield* oldUrl() })
    const namesOf = (files: ReadonlyArray<string>) => files.map((file) => file.replace(".sql", ""))
    const functions = namesOf(functionFiles().map(([file]) => file))
    assert.deepStrictEqual(JSON.parse(stdout), { applied: namesOf(outstanding), functions })
  })

  it.scoped("names on stderr which migrations stay applied after a failure", function* () {
    const { run } = yield* Cli
    const url = yield* oldUrl("CREATE TABLE number_seal ()")
    const { code, stderr, stdout } = yield* run(["migrate"], { DATABASE_URL: url })
    assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
    assert.deepStrictEqual(stderr.split("\n"), [
      started.trimEnd(),
      `gateway: warning: The migrations stopped after 1 of ${outstanding.length}. Applied: 0045_statement_events`,
      'gateway: 0046_sealed_numbers.sql failed and was rolled back: relation "number_seal" already exists',
      ""
    ])
  })
})
