import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { eventually } from "../harness/database/Money.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json, list, misuse, text } from "./Cli.ts"
import {
  byCode,
  chat,
  customer,
  events,
  Id,
  OperatedGateway,
  Shown,
  shownOf,
  spendOf,
  suiteWithGateway
} from "./Operator.ts"

withLayer(suiteWithGateway)("gateway", (it) => {
  it.scoped("requests show tells a request's course and why it cost what it did", function* () {
    const { send } = yield* OperatedGateway
    const { key, name } = yield* customer()
    yield* send({ path: "/chat/completions", id: "plain", key, body: chat("hello") })
    const plain = yield* shownOf("plain")
    assert.deepStrictEqual(events(plain), ["received", "admitted", "attempt 1", "first byte", "settled", "answered"])
    assert.include(plain.timeline[2]?.detail, "gemini-3.6-flash@sandbox sandbox ok")
    assert.deepInclude(plain, { address: "127.0.0.1", user_agent: "node", provider_request_id: null })
    assert.strictEqual(plain.hold?.state, "settled")
    assert.strictEqual(plain.price.price_usd, plain.charge_usd)
    assert.strictEqual(plain.price.why, "Quantity times rate is the charge.")
    const sum = plain.price.parts.reduce((total, { amount_usd }) => total + amount_usd, 0)
    assert.closeTo(sum, plain.charge_usd, 2e-9)
    assert.deepStrictEqual(plain.entries, [{ kind: "charge", amount_usd: -plain.charge_usd, ref: null }])
    assert.match(
      yield* text("requests", "show", "plain"),
      new RegExp(`^org +${name}$[^]*EVENT +AT_MS[^]*RATE_USD`, "m")
    )

    yield* send({ path: "/chat/completions", id: "plain", key, body: chat("[sandbox status=503]") })
    const [newest, ...older] = yield* list("requests", "show", "plain")
    assert.strictEqual(newest?.["status"], 503)
    const reason = "All providers failed (last: sandbox-b 503)."
    assert.deepStrictEqual(newest?.["error"], { param: null, message: reason, hint: null })
    assert.match(yield* text("requests", "show", "plain"), /^error +All providers failed \(last: sandbox-b 503\)\.$/m)
    const [listed] = yield* list("requests", "--org", name)
    assert.deepStrictEqual(listed?.["error"], newest?.["error"])
    assert.deepStrictEqual(
      older.map((row) => row["id"]),
      [plain.id]
    )
    const failed = Schema.decodeUnknownSync(Shown)(newest)
    assert.deepStrictEqual(events(failed), ["received", "admitted", "attempt 1", "attempt 2", "released", "answered"])
    assert.strictEqual(failed.price.why, "The hold was released, so nothing was charged.")
    assert.strictEqual((yield* shownOf(failed.id)).status, 503)
    assert.include(yield* failure(["requests", "show", "nothing"]), "nothing")
  })

  it.scoped("videos show and requests show say which attempt failed and why", function* () {
    const { send } = yield* OperatedGateway
    const { key } = yield* customer("10")
    const unmade = { model: "veo-3.1-fast-generate-001", prompt: "[sandbox fail]", seconds: 4 }
    const { id: failing } = JSON.parse((yield* send({ path: "/videos", id: "unmade", key, body: unmade })).body)
    yield* eventually(json("videos", "show", failing), ({ status }) => status === "failed")
    assert.match(
      yield* text("videos", "show", failing),
      /^error +upstream_error: The upstream provider returned an error\.$[^]*^failed +attempt 2 of 2$[^]*^ *2 +\S+@sandbox-b +retry +500 +\d+ +sandbox fault: fail$/m
    )
    assert.match(
      yield* text("requests", "show", "unmade"),
      /^video +vid_\w+ failed \(over\): upstream_error: The upstream/m
    )
  })

  it.scoped("credits refund gives a request's charge back once, whole or in parts", function* () {
    const sql = yield* SqlClient.SqlClient
    const { send } = yield* OperatedGateway
    const { key, keyId, name, org } = yield* customer("10")
    yield* send({ path: "/chat/completions", id: "chat", key, body: chat("hello") })
    yield* send({ path: "/images/generations", id: "image", key, body: { model: "gpt-image-2", prompt: "a cat" } })
    const { body } = yield* send({
      path: "/videos",
      id: "video",
      key,
      body: { model: "veo-3.1-fast-generate-001", prompt: "a dog", seconds: 4 }
    })
    const { id: video } = Schema.decodeUnknownSync(Schema.parseJson(Id))(body)
    yield* failure(["credits", "refund", "video", "--note", "x"])
    yield* eventually(json("videos", "show", video), ({ status }) => status === "completed")

    const spent = Effect.map(json("orgs", "show", name), (shown) => 10 - Number(shown["balance_usd"]))
    const usage = Effect.map(list("usage", "--org", name), (rows) =>
      rows.reduce((sum, row) => sum + Number(row["spend_usd"]), 0)
    )
    for (const id of ["chat", "image", "video"]) {
      const before = yield* shownOf(id)
      const part = (before.charge_usd / 4).toFixed(9)
      const first = yield* json("credits", "refund", id, "--amount", part, "--note", "sorry")
      assert.deepInclude(first, { kind: "refund", amount_usd: Number(part), note: "sorry", request: before.id })
      const tooMuch = yield* failure(["credits", "refund", id, "--amount", String(before.charge_usd), "--note", "x"])
      assert.include(tooMuch, `${before.charge_usd} USD`)
      assert.closeTo((yield* shownOf(id)).charge_usd, before.charge_usd - Number(part), 1e-9)
      assert.closeTo(yield* usage, yield* spendOf(org), 1e-9)
      yield* json("credits", "refund", id, "--note", "the rest")
      yield* failure(["credits", "refund", id, "--note", "again"])
      const after = yield* shownOf(id)
      assert.strictEqual(after.charge_usd, 0)
      assert.strictEqual(after.price.paid_usd, 0)
      assert.deepStrictEqual(events(after).slice(-2), ["refunded", "refunded"])
      const hold = after.entries[1]?.ref
      assert.strictEqual(after.entries[2]?.ref, `${hold}:2`)
    }
    assert.closeTo(yield* spent, 0, 1e-9)
    assert.closeTo(yield* usage, 0, 1e-9)
    assert.deepStrictEqual(yield* sql`SELECT sum(spent)::text AS spent FROM key_spend WHERE key_id = ${keyId}`, [
      { spent: "0" }
    ])
    assert.deepInclude(yield* json("ledger", "verify"), { proved: true })
  })

  it.scoped("credits refund finds a row by its id, though a client gave that id to another request", function* () {
    const { send } = yield* OperatedGateway
    const { key } = yield* customer("10")
    const hello = { path: "/chat/completions", key, body: chat("hello") }
    yield* send({ ...hello, id: "first" })
    const { id } = yield* shownOf("first")
    yield* send({ ...hello, id })
    assert.deepInclude(yield* json("credits", "refund", id, "--note", "sorry"), { request: id })
  })

  it.scoped("credits refund refuses a request of a deleted organization", function* () {
    const { send } = yield* OperatedGateway
    const { key, name, org } = yield* customer()
    yield* send({ path: "/chat/completions", id: "late", key, body: chat("hello") })
    const { balance_usd } = yield* json("orgs", "show", name)
    yield* json("credits", "adjust", name, `-${Number(balance_usd).toFixed(9)}`, "--note", "paid out")
    yield* json("orgs", "delete", name, "--yes")
    assert.include(yield* failure(["credits", "refund", "late", "--note", "x"]), org)
  })

  it.scoped("of refunds that come at the same time no more than the charge is given back", function* () {
    const { send } = yield* OperatedGateway
    const { start: startCommand } = yield* Cli
    const { key, org } = yield* customer()
    yield* send({ path: "/chat/completions", id: "race", key, body: chat("hello") })
    const { charge_usd } = yield* shownOf("race")
    const third = (charge_usd / 3 + 1e-9).toFixed(9)
    const command = startCommand(["credits", "refund", "race", "--amount", third, "--note", "n"])
    const finished = yield* Effect.forEach([1, 2, 3, 4], () => command).pipe(
      Effect.flatMap(Effect.forEach(({ finished }) => finished, { concurrency: 4 }))
    )
    assert.deepStrictEqual(finished.map(({ code }) => code).toSorted(byCode), [0, 0, 1, 1])
    assert.closeTo(yield* spendOf(org), charge_usd - 2 * Number(third), 1e-9)
    assert.deepInclude(yield* json("ledger", "verify"), { proved: true })
  })

  it.scoped("a request id that was charged more than once is refunded by the id of its row", function* () {
    const { send } = yield* OperatedGateway
    const { key } = yield* customer()
    yield* send({ path: "/chat/completions", id: "twice", key, body: chat("one") })
    yield* send({ path: "/chat/completions", id: "twice", key, body: chat("two") })
    const refusal = yield* failure(["credits", "refund", "twice", "--note", "x"])
    const ids = (yield* list("requests", "show", "twice")).map(({ id }) => String(id))
    assert.lengthOf(ids, 2)
    for (const id of ids) assert.include(refusal, id)
    assert.deepInclude(yield* json("credits", "refund", ids[0] ?? "", "--note", "x"), { request: ids[0] })
  })

  it.scoped("an organization is renamed, and deleted once it has nothing; its ledger stays", function* () {
    const { send } = yield* OperatedGateway
    const { key, keyId, name, org } = yield* customer("5")
    const renamed = `new ${name}`
    assert.deepInclude(yield* json("orgs", "rename", name, renamed), { id: org, name: renamed })
    yield* json("orgs", "create", "taken")
    assert.include(yield* failure(["orgs", "rename", renamed, "taken"]), "taken")
    yield* failure(["orgs", "rename", renamed, "org_x"])
    assert.include(yield* failure(["orgs", "rename", name, "other"]), name)
    assert.deepInclude(yield* json("keys", "rename", keyId, "robot"), { id: keyId, name: "robot" })
    const long = "a".repeat(201)
    assert.include(yield* misuse(["keys", "rename", keyId, long]), "200")
    assert.include(yield* misuse(["keys", "create", "--org", renamed, "--name", long]), "--name")

    assert.include(yield* misuse(["orgs", "delete", renamed]), "--yes")
    assert.include(yield* failure(["orgs", "delete", renamed, "--yes"]), "5 USD")
    assert.strictEqual((yield* send({ path: "/chat/completions", id: "x", key, body: chat("a") })).status, 200)
    const { available_usd } = yield* json("orgs", "show", renamed)
    yield* json("credits", "adjust", renamed, `-${Number(available_usd)}`, "--note", "closing")
    assert.deepInclude(yield* json("orgs", "delete", renamed, "--yes"), { id: org, balance_usd: 0 })
    assert.isTrue((yield* json("orgs", "show", org))["suspended"])
    yield* eventually(
      send({ path: "/chat/completions", id: "y", key, body: chat("a") }),
      ({ status }) => status === 401
    )
    assert.notInclude(yield* text("orgs", "list"), org)
    for (const args of [
      ["orgs", "resume", org],
      ["credits", "add", org, "1"],
      ["keys", "create", "--org", org]
    ]) {
      assert.include(yield* failure(args), org)
    }
    assert.lengthOf(yield* list("ledger", "show", org), 3)
    assert.isAbove((yield* list("requests", "--org", org)).length, 0)
    yield* json("orgs", "create", renamed)
    assert.deepInclude(yield* json("ledger", "verify"), { proved: true })
  })
})
