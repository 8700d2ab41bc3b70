import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json, list, misuse, text } from "./Cli.ts"

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
    assert.include(yield* failure(["keys", "reissue", String(made["id"])]), String(made["id"]))
    assert.include(yield* failure(["keys", "revoke", "key_nothing"]), "key_nothing")
    assert.include(yield* text("keys", "create", "--org", "acme"), "not shown again")
  })

  it.effect("keys: every limit can be set, changed and taken away", function* () {
    yield* json("orgs", "create", "limits")
    const limits = ["--name", "ci", "--scopes", "images,chat", "--rpm", "60", "--cap", "5.25", "--cap-period", "month"]
    const counts = ["--tpm", "90000", "--concurrency", "5"]
    const made = yield* json("keys", "create", "--org", "limits", ...limits, ...counts, "--expires", "2040-05-06")
    assert.deepInclude(made, {
      name: "ci",
      scopes: ["images", "chat"],
      rpm: 60,
      tpm: 90_000,
      concurrency: 5,
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
      "--tpm",
      "none",
      "--concurrency",
      "none",
      "--cap",
      "none",
      "--expires",
      "never"
    )
    assert.deepInclude(bare, { name: "", scopes: null, rpm: null, cap_usd: null, cap_period: null, expires_at: null })
    assert.deepInclude(bare, { tpm: null, concurrency: null })
    const id = String(made["id"])
    for (const wrong of ["0", "1.5", "1000000001"]) {
      assert.include(yield* misuse(["keys", "update", id, "--tpm", wrong]), "--tpm")
    }
    yield* misuse(["keys", "update", id])
    assert.include(yield* misuse(["keys", "update", id, "--cap", "3"]), "--cap-period")
    assert.include(yield* misuse(["keys", "update", id, "--cap-period", "day"]), "--cap")
    assert.include(yield* misuse(["keys", "update", id, "--expires", "2020-01-01"]), "--expires")
    const before = Math.floor(Date.now() / 1000)
    const { expires_at } = yield* update("--expires", "7d")
    assert.isAtLeast(Number(expires_at), before + 7 * 86_400)
    assert.isAtMost(Number(expires_at), before + 7 * 86_400 + 60)
  })

  it.effect("keys: a pattern that matches no model is kept, with a warning on stderr", function* () {
    const { run } = yield* Cli
    yield* json("orgs", "create", "models")
    const made = yield* run(["keys", "create", "--org", "models", "--models", "gpt-*, claud-*,x", "--json"])
    assert.strictEqual(made.code, 0)
    assert.include(made.stderr, "warning")
    assert.include(made.stderr, "claud-*, x")
    const { id, models } = JSON.parse(made.stdout)
    assert.deepStrictEqual(models, ["gpt-*", "claud-*", "x"])
    const update = (models: string, env = {}) => run(["keys", "update", id, "--models", models, "--json"], env)
    const broken = yield* update("claude-*", { CATALOG_FILE: "/nowhere.yaml" })
    assert.deepStrictEqual(JSON.parse(broken.stdout).models, ["claude-*"])
    assert.include(broken.stderr, "warning")
    assert.deepInclude(yield* update("all"), { code: 0, stderr: "" })
    assert.isNull((yield* list("keys", "list", "--org", "models"))[0]?.["models"])
    for (const wrong of ["", "a b", "gpt?", "x".repeat(201), Array.from({ length: 101 }, (_, at) => `m${at}`).join()]) {
      assert.include(yield* misuse(["keys", "update", id, "--models", wrong]), "--models")
    }
  })

  it.effect("keys: a reissue can leave the old secret valid for a while", function* () {
    yield* json("orgs", "create", "grace")
    const { id } = yield* json("keys", "create", "--org", "grace")
    const reissue = (...given: ReadonlyArray<string>) => json("keys", "reissue", String(id), ...given)
    const before = Math.floor(Date.now() / 1000)
    const { key, previous_expires_at } = yield* reissue("--grace", "24h")
    assert.isAtLeast(Number(previous_expires_at), before + 86_400 - 1)
    assert.isAtMost(Number(previous_expires_at), before + 86_400 + 60)
    const [listed] = yield* list("keys", "list", "--org", "grace")
    assert.strictEqual(listed?.["previous_expires_at"], previous_expires_at)
    for (const wrong of ["31d", "721h", "0s", "1.5h", "3600", "soon", "2099-01-01", ""]) {
      assert.include(yield* misuse(["keys", "reissue", String(id), "--grace", wrong]), "--grace")
    }
    assert.include(yield* misuse(["keys", "reissue", String(id), "--grace=-1h"]), "--grace")
    assert.deepStrictEqual((yield* list("keys", "list", "--org", "grace"))[0], listed)
    assert.strictEqual(listed?.["hint"], String(key).slice(4, 12))
    assert.isNumber((yield* reissue("--grace", "30d"))["previous_expires_at"])
    assert.isNull((yield* reissue())["previous_expires_at"])
    assert.isNull((yield* reissue("--grace", "none"))["previous_expires_at"])
  })

  it.effect("blocklist: ranges in canonical form, of both families", function* () {
    assert.deepInclude(yield* json("blocklist", "add", "192.168.1.7/24"), { id: "192.168.1.0/24" })
    yield* json("blocklist", "add", "2001:db8::1")
    yield* json("blocklist", "add", "::ffff:10.0.0.1")
    const ids = (yield* list("blocklist", "list")).map(({ id }) => id)
    assert.deepStrictEqual(ids, ["10.0.0.1/32", "192.168.1.0/24", "2001:db8::1/128"])
    assert.deepInclude(yield* json("blocklist", "remove", "10.0.0.1"), { id: "10.0.0.1/32" })
    assert.include(yield* failure(["blocklist", "remove", "10.0.0.1"]), "10.0.0.1/32")
    assert.include(yield* misuse(["blocklist", "add", "10.1"]), "CIDR")
    for (const everyone of ["0.0.0.0/0", "::/0"]) {
      assert.include(yield* failure(["blocklist", "add", everyone]), "--force")
      assert.deepInclude(yield* json("blocklist", "add", everyone, "--force"), { id: everyone })
      yield* json("blocklist", "remove", everyone)
    }
  })
})
