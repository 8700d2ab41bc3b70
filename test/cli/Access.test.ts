import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json, list, text } from "./Cli.ts"

withLayer(Cli.layer)("gateway", (it) => {
  it.effect("keys: the secret is shown by create and reissue, and nowhere else", function* () {
    const org = yield* json("orgs", "create", "acme")
    const made = yield* json("keys", "create", "--org", "acme")
    assert.deepStrictEqual(Object.keys(made).slice(0, 2), ["id", "key"])
    assert.match(String(made["key"]), /^ggw_[\w-]{43}$/)
    assert.deepInclude(made, { org: org["id"], name: "", scopes: null, rpm: null, cap_usd: null, spent_usd: 0 })
    const listed = yield* list("keys", "list", "--org", String(org["id"]))
    const { key, ...rest } = made
    assert.deepStrictEqual(listed, [rest])
    const again = yield* json("keys", "reissue", String(made["id"]))
    assert.deepStrictEqual({ ...again, key, hint: made["hint"] }, made)
    assert.notStrictEqual(again["key"], key)
    for (const issued of [made, again]) assert.strictEqual(issued["hint"], String(issued["key"]).slice(4, 12))
    assert.isNull(made["last_used_at"])
    assert.match(yield* text("keys", "list", "--org", "acme"), /HINT.* LAST_USED_AT/)
    const revoked = yield* json("keys", "revoke", String(made["id"]))
    assert.isTrue(Number.isInteger(revoked["revoked_at"]))
    assert.isFalse("key" in revoked)
    assert.include(yield* failure(["keys", "reissue", String(made["id"])]), "is revoked")
    assert.include(yield* failure(["keys", "revoke", "key_nothing"]), "key_nothing")
    assert.include(yield* text("keys", "create", "--org", "acme"), "not shown again")
  })

  it.effect("keys: every limit can be set, changed and taken away", function* () {
    yield* json("orgs", "create", "limits")
    const limits = ["--name", "ci", "--scopes", "images,chat", "--rpm", "60", "--cap", "5.25", "--cap-period", "month"]
    const made = yield* json("keys", "create", "--org", "limits", ...limits, "--expires", "2040-05-06")
    assert.deepInclude(made, {
      name: "ci",
      scopes: ["images", "chat"],
      rpm: 60,
      cap_usd: 5.25,
      cap_period: "month",
      expires_at: Date.UTC(2040, 4, 6) / 1000
    })
    const update = (...args: ReadonlyArray<string>) => json("keys", "update", String(made["id"]), ...args)
    assert.deepInclude(yield* update("--cap-period", "day"), {
      cap_usd: 5.25,
      cap_period: "day",
      rpm: 60,
      name: "ci"
    })
    assert.deepInclude(yield* update("--cap", "7"), { cap_usd: 7, cap_period: "day" })
    const bare = yield* update(
      "--name",
      "",
      "--scopes",
      "all",
      "--rpm",
      "default",
      "--cap",
      "none",
      "--expires",
      "never"
    )
    assert.deepInclude(bare, { name: "", scopes: null, rpm: null, cap_usd: null, cap_period: null, expires_at: null })
    const id = String(made["id"])
    assert.include(yield* failure(["keys", "update", id]), "Nothing to change")
    assert.include(yield* failure(["keys", "update", id, "--cap", "3"]), "--cap-period")
    assert.include(yield* failure(["keys", "update", id, "--cap-period", "day"]), "--cap")
    assert.include(yield* failure(["keys", "update", id, "--expires", "2020-01-01"]), "future")
    const before = Math.floor(Date.now() / 1000)
    const { expires_at } = yield* update("--expires", "7d")
    assert.isAtLeast(Number(expires_at), before + 7 * 86_400)
    assert.isAtMost(Number(expires_at), before + 7 * 86_400 + 60)
  })

  it.effect("blocklist: ranges in canonical form, of both families", function* () {
    assert.deepInclude(yield* json("blocklist", "add", "192.168.1.7/24"), { id: "192.168.1.0/24" })
    yield* json("blocklist", "add", "2001:db8::1")
    yield* json("blocklist", "add", "::ffff:10.0.0.1")
    const ids = (yield* list("blocklist", "list")).map(({ id }) => id)
    assert.deepStrictEqual(ids, ["10.0.0.1/32", "192.168.1.0/24", "2001:db8::1/128"])
    assert.deepInclude(yield* json("blocklist", "remove", "10.0.0.1"), { id: "10.0.0.1/32" })
    assert.include(yield* failure(["blocklist", "remove", "10.0.0.1"]), "10.0.0.1/32")
    assert.include(yield* failure(["blocklist", "add", "10.1"]), "CIDR must be")
    for (const everyone of ["0.0.0.0/0", "::/0"]) {
      assert.include(yield* failure(["blocklist", "add", everyone]), "--force")
      assert.deepInclude(yield* json("blocklist", "add", everyone, "--force"), { id: everyone })
      yield* json("blocklist", "remove", everyone)
    }
  })
})
