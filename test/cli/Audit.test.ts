import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json } from "./Cli.ts"
import { suite } from "./Operator.ts"

const audited = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly action: string; readonly actor: string; readonly via: string; readonly target: string }>`
    SELECT action, actor, via, target, before::text AS before, after::text AS after FROM audit ORDER BY id`
)

withLayer(suite)("the audit of the command line", (it) => {
  it.effect("has a row for each change of customers, money and the block list, without a secret", function* () {
    const org = String((yield* json("orgs", "create", "acme", "--credits", "5"))["id"])
    yield* json("orgs", "rename", "acme", "acme 2")
    const { id, key } = yield* json("keys", "create", "--org", "acme 2")
    yield* json("keys", "update", String(id), "--rpm", "5")
    yield* json("keys", "rename", String(id), "ci")
    const again = yield* json("keys", "reissue", String(id))
    yield* json("keys", "revoke", String(id))
    const paid = yield* json("credits", "add", org, "7", "--ref", "inv 1")
    const taken = yield* json("credits", "adjust", org, "-12", "--note", "gone")
    yield* json("orgs", "suspend", org)
    yield* json("orgs", "resume", org)
    yield* json("orgs", "delete", org, "--yes")
    yield* json("blocklist", "add", "203.0.113.0/24")
    yield* json("blocklist", "remove", "203.0.113.0/24")
    yield* failure(["keys", "revoke", "key_none"])
    yield* failure(["credits", "adjust", org, "1", "--note", "late"])

    const rows = yield* audited
    assert.deepStrictEqual(
      rows.map(({ action, target }) => [action, target]),
      [
        ["organizations.create", org],
        ["organizations.update", org],
        ...["create", "update", "update", "reissue", "revoke"].map((verb) => [`keys.${verb}`, id]),
        ["credits.top_up", paid["id"]],
        ["credits.adjust", taken["id"]],
        ...["suspend", "resume", "delete"].map((verb) => [`organizations.${verb}`, org]),
        ["blocklist.add", "203.0.113.0/24"],
        ["blocklist.remove", "203.0.113.0/24"]
      ]
    )
    for (const { actor, via } of rows) {
      assert.strictEqual(via, "cli")
      assert.match(actor, /^cli:.+@.+$/)
    }
    for (const secret of [key, again["key"]]) {
      assert.notInclude(JSON.stringify(rows), String(secret).slice(4 + 8))
    }
  })

  it.effect("names who is given as the actor", function* () {
    const { run } = yield* Cli
    assert.strictEqual((yield* run(["blocklist", "add", "203.0.113.9"], { GATEWAY_ACTOR: "ada" })).code, 0)
    assert.strictEqual((yield* audited).at(-1)?.actor, "cli:ada")
  })
})
