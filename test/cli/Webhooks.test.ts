import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { Cli, failure, json, list, text } from "./Cli.ts"

const url = "https://hooks.example/gateway"

withLayer(Cli.layer)("gateway webhooks", (it) => {
  it.scoped("adds an endpoint, whose secret is shown once, lists it and removes it", function* () {
    const org = yield* json("orgs", "create", "acme")
    const { id, secret, ...rest } = yield* json("webhooks", "add", "--org", "acme", "--url", url)
    assert.match(String(id), /^whe_[0-9a-f]{32}$/)
    assert.match(String(secret), /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepInclude(rest, { org: org["id"], url, disabled_at: null, pending: 0, failure: null, failed_at: null })
    assert.include(yield* text("webhooks", "add", "--org", "acme", "--url", url), "Store the secret")
    const listed = yield* list("webhooks", "list", "--org", "acme")
    assert.lengthOf(listed, 2)
    assert.deepInclude(listed[0], { id, ...rest })
    assert.notInclude(JSON.stringify(listed), "whsec_")
    assert.deepInclude(yield* json("webhooks", "enable", String(id)), { id })
    assert.deepInclude(yield* json("webhooks", "remove", String(id)), { id })
    assert.strictEqual(
      yield* failure(["webhooks", "remove", String(id)]),
      `There is no webhook endpoint ${String(id)}.`
    )
    assert.lengthOf(yield* list("webhooks", "list"), 1)
  })

  it.scoped("refuses a URL that leads inside, except where FETCH_ALLOW has it", function* () {
    yield* json("orgs", "create", "inside")
    const add = ["webhooks", "add", "--org", "inside", "--url", "http://127.0.0.1:9000/"]
    assert.include(yield* failure(add), "127.0.0.1:9000")
    const { run } = yield* Cli
    assert.strictEqual((yield* run(add, { FETCH_ALLOW: "127.0.0.1" })).code, 0)
  })

  it.scoped("tests an endpoint, and fails where the event is not delivered", function* () {
    yield* json("orgs", "create", "tested")
    const { run } = yield* Cli
    const url = `http://127.0.0.1:${yield* freePort}/`
    const local = { FETCH_ALLOW: "127.0.0.1" }
    yield* run(["webhooks", "add", "--org", "tested", "--url", url], local)
    const [{ id } = { id: "" }] = yield* list("webhooks", "list", "--org", "tested")
    const { code, stderr, stdout } = yield* run(["webhooks", "test", String(id), "--json"], local)
    assert.strictEqual(code, 1)
    assert.deepInclude(JSON.parse(stdout), { id, url, delivered: false, status: null })
    assert.include(stderr, "network")
    assert.deepInclude((yield* list("webhooks", "list", "--org", "tested"))[0], { failure: null, failed_at: null })
  })

  it.scoped("tells of a threshold that the balance is below already", function* () {
    yield* json("orgs", "create", "low", "--credits", "3")
    const { run } = yield* Cli
    const below = (amount: string) => run(["orgs", "notify", "low", "--below", amount])
    const { code, stderr } = yield* below("5")
    assert.strictEqual(code, 0)
    assert.include(stderr, "warning")
    assert.notInclude((yield* below("3")).stderr, "warning")
    assert.notInclude((yield* below("none")).stderr, "warning")
  })

  it.scoped("shows the secret of an organization until it is reissued", function* () {
    const { id } = yield* json("orgs", "create", "requests")
    const first = yield* json("webhooks", "secret", "--org", "requests")
    assert.strictEqual(first["id"], id)
    assert.match(String(first["secret"]), /^whsec_/)
    assert.deepStrictEqual(yield* json("webhooks", "secret", "--org", "requests"), first)
    const second = yield* json("webhooks", "secret", "--org", "requests", "--reissue")
    assert.notStrictEqual(second["secret"], first["secret"])
    assert.deepStrictEqual(yield* json("webhooks", "secret", "--org", "requests"), second)
  })

  it.scoped("lists deliveries, and replays only what there is", function* () {
    yield* json("orgs", "create", "deliveries")
    assert.deepStrictEqual(yield* list("webhooks", "deliveries", "--org", "deliveries", "--failed"), [])
    assert.deepStrictEqual(yield* list("webhooks", "deliveries"), [])
    assert.include(yield* failure(["webhooks", "replay", "evt_none"]), "evt_none")
  })
})
