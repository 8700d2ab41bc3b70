import { Effect, Schema } from "effect"
import { Cli, json } from "../../cli/Cli.ts"
import { adminAt, read } from "../../harness/client/AdminClient.ts"
import { eventually } from "../../harness/database/Money.ts"
import { start } from "../../harness/gateway/GatewayProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

const Token = Schema.Struct({ token: Schema.String })

interface Row {
  readonly id: string
  readonly state: string
  readonly via: string
  readonly action: string
  readonly actor: string
}

withLayer(Cli.layer)("operators of a running gateway", (it) => {
  it.scoped("disable a route of the sandbox for all requests, reload the catalog, and see both audited", function* () {
    const { url } = yield* Cli
    const { url: base } = yield* start({ env: { DATABASE_URL: url, SANDBOX: "true" } })
    const { token } = yield* Schema.decodeUnknown(Token)(yield* json("operators", "create", "ada", "--role", "write"))
    const admin = adminAt(base, token)
    yield* json("orgs", "create", "acme", "--credits", "10")
    const { key } = yield* json("keys", "create", "--org", "acme")
    const model = "gemini-3.6-flash"
    const status = Effect.promise(async () => {
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] })
      const headers = { authorization: `Bearer ${String(key)}`, "content-type": "application/json" }
      const { status } = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body })
      return status
    })
    assert.strictEqual(yield* status, 200)
    const { data, sandbox } = read(yield* admin("/routes"))
    assert.isTrue(sandbox)
    const served = data.filter((one: { model: string; off_reason: string | null }) => {
      return one.model === model && one.off_reason === null
    })
    assert.isNotEmpty(served)
    for (const { id } of served) read(yield* admin("/routes/disable", { body: { route: id, note: "drill" } }))
    yield* eventually(status, (now) => now === 503)
    for (const { id } of served) read(yield* admin("/routes/enable", { body: { route: id } }))
    yield* eventually(status, (now) => now === 200)

    const reloaded = read(yield* admin("/catalog/reload", { method: "POST" }))
    assert.deepStrictEqual(
      reloaded.data.map(({ state }: Row) => state),
      ["reloaded"]
    )
    const { data: instances } = read(yield* admin("/instances"))
    assert.deepStrictEqual(
      instances.map(({ id, state }: Row) => [id, state]),
      [[reloaded.data[0].id, "running"]]
    )
    const { data: rows } = read(yield* admin("/audit?limit=100"))
    const changes = rows.map(({ action, via }: Row) => `${via} ${action}`)
    const all = ["cli operators.create", "cli organizations.create", "api routes.disable", "api routes.enable"]
    assert.strictEqual(changes[0], "api catalog.reload")
    for (const change of all) assert.include(changes, change)
    const actors = rows.filter(({ via }: Row) => via === "cli").map(({ actor }: Row) => actor)
    for (const actor of actors) assert.match(actor, /^cli:[^@]+@.+$/)
  })
})
