import { readdirSync } from "node:fs"
import path from "node:path"
import { assert, withLayer } from "../harness/It.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { Cli, failure } from "./Cli.ts"

const commands = [
  "backup FILE",
  "blocklist list",
  "catalog reload",
  "credits add acme 5",
  "holds",
  "keys create --org acme",
  "keys list --org acme",
  "ledger verify",
  "media delete http://127.0.0.1:8787/media/public/x.png",
  "migrate",
  "operators link admin",
  "operators list",
  "orgs create acme",
  "orgs list",
  "payments list",
  "payments sync",
  "providers",
  "reconcile google --since 2d",
  "requests",
  "requests show X",
  "routes reset gemini-3.6-flash@google",
  "statement acme --month 2026-10",
  "usage",
  "videos list",
  "webhooks list"
]

withLayer(Cli.layer)("gateway in a directory without a database", (it) => {
  it.scoped("fails and creates none, whatever the command", function* () {
    const { directory } = yield* Cli
    const DATA_DIR = path.join(yield* temporaryDirectory, "data")
    for (const command of commands) {
      const line = yield* failure(command.split(" "), { DATABASE_URL: "", DATA_DIR })
      assert.include(line, `There is no database in ${DATA_DIR}.`, command)
      assert.include(line, "gateway serve", command)
    }
    assert.deepStrictEqual(readdirSync(path.dirname(DATA_DIR)), [])
    assert.deepStrictEqual(readdirSync(directory), [])
  })
})
