import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import * as MediaStores from "../../src/storage/MediaStores.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, json, text } from "./Cli.ts"
import { suite } from "./Operator.ts"

const rowsOf = (action: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`SELECT actor, via, action, target, after FROM audit WHERE action LIKE ${`${action}.%`} ORDER BY id`
  )

const stored = Effect.gen(function* () {
  const directory = path.join((yield* Cli).directory, ".data", "media")
  const options = { store: "disk", directory, publicUrl: "http://127.0.0.1:8787/media" } as const
  const store = Context.get(yield* Layer.build(MediaStores.layer(options)), MediaStore)
  return yield* store.put({ type: "image/png", visibility: "public", body: Buffer.from("picture") })
})

const Routes = Schema.parseJson(Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) }))

withLayer(suite)("what commands change is in the audit", (it) => {
  it.scoped("those of webhooks and operators with who ran them and where, and without secrets", function* () {
    const { id: org } = yield* json("orgs", "create", "acme")
    const { id: endpoint, secret } = yield* json("webhooks", "add", "--org", "acme", "--url", "https://hooks.example/")
    yield* json("webhooks", "enable", String(endpoint))
    const { secret: reissued } = yield* json("webhooks", "secret", "--org", "acme", "--reissue")
    yield* json("webhooks", "remove", String(endpoint))
    const webhooks = yield* rowsOf("webhooks")
    assert.deepStrictEqual(
      webhooks.map(({ action, target }) => [action, target]),
      [
        ["webhooks.add", endpoint],
        ["webhooks.enable", endpoint],
        ["webhooks.reissue_secret", org],
        ["webhooks.remove", endpoint]
      ]
    )
    for (const { actor, via } of webhooks) {
      assert.strictEqual(via, "cli")
      assert.match(String(actor), /^cli:[^@]+@.+$/)
    }
    const { id, link, token } = yield* json("operators", "create", "ada", "--role", "owner")
    yield* json("operators", "update", "ada", "--role", "read")
    yield* json("operators", "revoke", "ada")
    assert.deepStrictEqual(
      (yield* rowsOf("operators")).map(({ action, target }) => [action, target]),
      [
        ["operators.create", id],
        ["operators.update", id],
        ["operators.revoke", id]
      ]
    )
    const sql = yield* SqlClient.SqlClient
    const kept = JSON.stringify(yield* sql`SELECT audit::text FROM audit`)
    for (const one of [secret, reissued, token, String(link).split("#link=")[1]]) {
      assert.isFalse(kept.includes(String(one)))
    }
  })

  it.scoped("those of a file that is taken down, of routes and of a reload too", function* () {
    const name = yield* stored
    yield* json("media", "delete", name)
    assert.deepInclude((yield* rowsOf("media"))[0], { action: "media.delete", target: name, via: "cli" })
    const { run } = yield* Cli
    assert.strictEqual((yield* run(["routes", "disable", "none"])).code, 1)
    assert.isEmpty(yield* rowsOf("routes"))
    const sandbox = { SANDBOX: "true" }
    const { stdout } = yield* run(["providers", "--json"], sandbox)
    const { data } = yield* Schema.decode(Routes)(stdout)
    const [{ id: route } = { id: "" }] = data
    assert.strictEqual((yield* run(["routes", "disable", route, "--note", "drill"], sandbox)).code, 0)
    assert.deepInclude((yield* rowsOf("routes"))[0], { action: "routes.disable", target: route, via: "cli" })
    assert.include(yield* text("catalog", "reload"), "No gateway is running")
    assert.deepInclude((yield* rowsOf("catalog"))[0], { action: "catalog.reload", after: { generation: 1 } })
  })
})
