import { mkdirSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import { hostname } from "node:os"
import path from "node:path"
import { Effect } from "effect"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import { Cli, failure, json, text } from "./Cli.ts"

withLayer(Cli.layer)("gateway keys show", (it) => {
  it.scoped("shows a key by its id or by a name that no other usable key has", function* () {
    yield* json("orgs", "create", "acme")
    yield* json("orgs", "create", "globex")
    const limits = ["--scopes", "chat", "--cap", "5", "--cap-period", "month"]
    const first = yield* json("keys", "create", "--org", "acme", "--name", "backend", ...limits)
    const { key: _, ...facts } = first
    assert.deepStrictEqual(yield* json("keys", "show", String(first["id"])), { ...facts, org_name: "acme" })
    const shown = yield* text("keys", "show", "backend")
    for (const line of [
      /^name +backend$/m,
      /^scopes +chat$/m,
      /^models +all$/m,
      /^rpm +default$/m,
      /^cap_usd +5\.00$/m
    ]) {
      assert.match(shown, line)
    }
    assert.isBelow(shown.indexOf("backend"), shown.indexOf(String(first["id"])))

    const second = yield* json("keys", "create", "--org", "globex", "--name", "backend")
    const ambiguous = yield* failure(["keys", "show", "backend"])
    for (const { id } of [first, second]) assert.include(ambiguous, String(id))
    assert.strictEqual((yield* json("keys", "show", "backend", "--org", "globex"))["id"], second["id"])
    yield* json("keys", "revoke", String(first["id"]))
    assert.strictEqual((yield* json("keys", "show", "backend"))["id"], second["id"])
    assert.strictEqual((yield* json("keys", "show", "backend", "--org", "acme"))["id"], first["id"])
    assert.strictEqual(yield* failure(["keys", "show", "back"]), "There is no key with the id or name back.")
  })

  it.scoped("shows names before ids in lists", function* () {
    yield* json("orgs", "create", "initech", "--credits", "12.5")
    yield* json("keys", "create", "--org", "initech", "--name", "ci")
    yield* json("operators", "create", "ana", "--role", "owner")
    assert.match(
      yield* text("orgs", "list"),
      /^NAME +ID .*\n(?:.*\n)*initech +org_\w+ +false +12\.50 +0\.00 +12\.50 .* \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/m
    )
    assert.match(yield* text("keys", "list", "--org", "initech"), /^NAME +ID .*\nci +key_/)
    assert.match(yield* text("operators", "list"), /^NAME +ROLE +ORG_NAME +ID .*\nana +owner +- +opr_/)
  })
})

withLayer(Cli.layer)("gateway open", (it) => {
  it.scoped("prints the address of the running gateway's console", function* () {
    const { run } = yield* Cli
    const port = yield* freePort
    const url = `http://127.0.0.1:${port}`
    yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((_, response) => response.end("{}"))
        await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve))
        return server
      }),
      (server) => Effect.sync(() => server.close())
    )
    const DATA_DIR = yield* temporaryDirectory
    mkdirSync(path.join(DATA_DIR, "instances"))
    const record = { host: hostname(), pid: process.pid, startedAt: Date.now(), url, publicUrl: url }
    writeFileSync(path.join(DATA_DIR, "instances", "1.json"), JSON.stringify(record))
    const plain = yield* run(["open"], { DATA_DIR })
    assert.deepStrictEqual([plain.code, plain.stderr], [0, ""])
    assert.strictEqual(plain.stdout.split("\n")[0], `${url}/console`)
    assert.include(plain.stdout, "gateway operators link NAME")
    const machine = yield* run(["open", "--json"], { DATA_DIR })
    assert.deepStrictEqual(JSON.parse(machine.stdout), { url: `${url}/console` })
    const PUBLIC_URL = "https://gateway.example"
    const proxied = yield* run(["open", "--json"], { DATA_DIR, PUBLIC_URL })
    assert.deepStrictEqual(JSON.parse(proxied.stdout), { url: `${PUBLIC_URL}/console` })
  })

  it.scoped("fails if no gateway runs here", function* () {
    const DATA_DIR = yield* temporaryDirectory
    const message = `No gateway with the data directory ${DATA_DIR} is running on this machine. Start it: gateway serve`
    assert.strictEqual(yield* failure(["open"], { DATA_DIR }), message)
    const { run } = yield* Cli
    const { code, stderr, stdout } = yield* run(["open", "--json"], { DATA_DIR })
    assert.deepStrictEqual([code, stdout], [1, ""])
    assert.deepStrictEqual(JSON.parse(stderr), { error: { message, type: "command_failed" } })
  })
})
