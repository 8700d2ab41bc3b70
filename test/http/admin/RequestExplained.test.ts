import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { bearer, call } from "../../harness/client/HttpCalls.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { nanoOf, parseCsv } from "./CsvText.ts"

const suite = Served.layer(Effect.succeed({ env: { SANDBOX: "true" }, timings: earlyPolls }))

const begin = Effect.gen(function* () {
  const { url } = yield* Served.ServedGateway
  const { token } = yield* hire("read")
  const account = yield* openAccount({})
  const admin = adminAt(url, token)
  const send = (path: string, id: string, body: unknown) =>
    call(`/v1${path}`, {
      body,
      headers: { ...bearer(account.secret), "content-type": "application/json", "x-request-id": id }
    })
  const shown = (id: string) =>
    Effect.map(
      eventually(admin(`/requests/${id}`), ({ status }) => status === 200),
      (answer) => read(answer)
    )
  return { ...account, admin, send, shown }
})

const chat = (content: string) => ({ model: "gemini-3.6-flash", messages: [{ role: "user", content }] })

withLayer(suite)("one request at the admin API", (it) => {
  it.effect("tells every attempt, and how its price came about to the nano-dollar", function* () {
    const { send, shown } = yield* begin
    yield* send("/chat/completions", "failed-over", chat("[sandbox status=503 routes=1] hello"))
    const request = yield* shown("failed-over")
    assert.deepStrictEqual(
      request.timeline.map(({ event }: { event: string }) => event),
      ["received", "admitted", "attempt 1", "attempt 2", "first byte", "settled", "answered"]
    )
    assert.deepStrictEqual(
      request.attempts.map(({ outcome, status }: { outcome: string; status: number }) => [outcome, status]),
      [
        ["retry", 503],
        ["ok", 200]
      ]
    )
    const { charge_usd, parts, price_usd, why } = request.price
    let sum = 0n
    for (const { amount_usd, quantity, rate_usd } of parts) {
      assert.strictEqual(nanoOf(amount_usd), (BigInt(quantity) * nanoOf(rate_usd)) / 1_000_000n)
      sum += nanoOf(amount_usd)
    }
    assert.strictEqual(sum, nanoOf(charge_usd))
    assert.strictEqual(price_usd, charge_usd)
    assert.strictEqual(why, "Quantity times rate is the charge.")
    assert.deepInclude(request.hold, { state: "settled", charged_usd: charge_usd })
  })

  it.effect("shows what was refunded of it, and what is left of its margin", function* () {
    const { admin, org, send, shown } = yield* begin
    yield* send("/chat/completions", "refunded", chat("hello"))
    const before = yield* shown("refunded")
    const { refund } = yield* LedgerAdmin
    const amount = NanoUsd(nanoOf(before.charge_usd) / 4n)
    const note = "<script>alert(1)</script>"
    yield* refund({ row: before.id, hold: before.hold.id, amount, note })
    const after = yield* shown("refunded")
    assert.strictEqual(nanoOf(after.price.refunded_usd), amount)
    assert.strictEqual(nanoOf(after.price.paid_usd), nanoOf(before.charge_usd) - amount)
    assert.strictEqual(nanoOf(after.charge_usd), nanoOf(after.price.paid_usd))
    assert.strictEqual(after.price.charge_usd, before.charge_usd)
    assert.strictEqual(before.refunded_usd, 0)
    assert.strictEqual(nanoOf(after.refunded_usd), amount)
    yield* send("/chat/completions", "not-refunded", chat("hello"))
    yield* shown("not-refunded")
    const listed = read(yield* admin(`/requests?organization=${org}`)).data
    const refunds = listed.map((row: { refunded_usd: number }) => nanoOf(row.refunded_usd))
    assert.deepStrictEqual(refunds, [0n, amount])
    const rows = parseCsv((yield* admin(`/requests.csv?organization=${org}`)).text)
    assert.deepStrictEqual(
      rows.map((row) => nanoOf(row["refunded_usd"] ?? "")),
      [0n, amount]
    )
    assert.deepStrictEqual(
      after.entries.map(({ kind, note }: { kind: string; note: string }) => [kind, note]),
      [
        ["charge", null],
        ["refund", note]
      ]
    )
    assert.include(after.timeline.at(-1).detail, note)
  })

  it.effect("shows which attempt of a video failed and why; members see no routes", function* () {
    const { admin, org, send, shown } = yield* begin
    const { url } = yield* Served.ServedGateway
    const member = adminAt(url, (yield* hire("read", org)).token)
    yield* send("/videos", "unmade", { model: "veo-3.1-fast-generate-001", prompt: "[sandbox fail] a dog", seconds: 4 })
    const { timeline, video } = yield* eventually(shown("unmade"), ({ video }) => video.status === "failed")
    const message = "The upstream provider returned an error."
    const error = { code: "upstream_error", message, attempt: 2, outcome: "retry" }
    assert.deepStrictEqual(video.error, error)
    const ends = video.attempts.map(({ detail, outcome, provider, status }: Readonly<Record<string, unknown>>) => [
      provider,
      outcome,
      status,
      detail
    ])
    assert.deepStrictEqual(ends, [
      ["sandbox", "retry", 500, "sandbox fault: fail"],
      ["sandbox-b", "retry", 500, "sandbox fault: fail"]
    ])
    const detailOf = (name: string) => timeline.find(({ event }: { event: string }) => event === name).detail
    assert.match(detailOf("attempt 2"), /sandbox-b retry 500 sandbox fault: fail$/)
    assert.strictEqual(detailOf("failed"), `upstream_error ${message}`)
    const [listed] = read(yield* admin(`/videos?organization=${org}`)).data
    assert.deepStrictEqual(listed.error, error)
    const seen = read(yield* member(`/videos/${video.id}`))
    assert.deepStrictEqual([seen.error, seen.attempts, seen.route], [error, undefined, undefined])
    assert.isNull(seen.url)
    const request = read(yield* member("/requests/unmade"))
    assert.deepStrictEqual(request.video, { id: video.id, status: "failed", error })
    assert.notInclude(JSON.stringify([seen, request]), "sandbox")
  })

  it.effect("has a known cost in the sandbox, on every surface", function* () {
    const { send, shown } = yield* begin
    yield* send("/chat/completions", "cost-chat", chat("hello"))
    yield* send("/images/generations", "cost-image", { model: "gpt-image-2", prompt: "a cat" })
    yield* send("/videos", "cost-video", { model: "veo-3.1-fast-generate-001", prompt: "a dog", seconds: 4 })
    yield* eventually(shown("cost-video"), ({ video }) => video.status === "completed")
    for (const id of ["cost-chat", "cost-image", "cost-video"]) {
      const { cost_usd, price } = yield* shown(id)
      assert.isAbove(cost_usd, 0, id)
      assert.strictEqual(nanoOf(price.margin_usd), nanoOf(price.charge_usd) - nanoOf(cost_usd), id)
    }
  })

  it.effect("has the status of its video, in lists and as CSV, for operators and members", function* () {
    const { admin, org, send, shown } = yield* begin
    const { url } = yield* Served.ServedGateway
    const member = adminAt(url, (yield* hire("read", org)).token)
    const model = "veo-3.1-fast-generate-001"
    const statuses = {
      completed: "[sandbox] a dog",
      failed: "[sandbox fail] a dog",
      queued: "[sandbox delay=600000] a dog"
    }
    yield* send("/chat/completions", "answered", chat("hello"))
    yield* shown("answered")
    for (const [status, prompt] of Object.entries(statuses)) {
      yield* send("/videos", status, { model, prompt, seconds: 4 })
      if (status === "queued") yield* shown(status)
      else yield* eventually(shown(status), ({ video_status }) => video_status === status)
    }
    const expected: ReadonlyArray<ReadonlyArray<string | null>> = [
      ["queued", "in_progress"],
      ["failed"],
      ["completed"],
      [null]
    ]
    for (const ask of [admin, member]) {
      const listed = read(yield* ask(`/requests?organization=${org}`)).data
      assert.lengthOf(listed, expected.length)
      for (const [index, { video_status }] of listed.entries()) assert.include(expected[index] ?? [], video_status)
      const { text } = yield* ask(`/requests.csv?organization=${org}`)
      assert.match(text, /^id,[^\n]*,error_hint,video_status\r\n/)
      for (const [index, row] of parseCsv(text).entries()) {
        assert.include(expected[index] ?? [], row["video_status"] || null)
      }
    }
  })

  it.effect("of a completed video links to the file that its customer gets, until it is deleted", function* () {
    const { admin, org, secret, send, shown } = yield* begin
    const { url } = yield* Served.ServedGateway
    const member = adminAt(url, (yield* hire("read", org)).token)
    yield* send("/videos", "linked", { model: "veo-3.1-fast-generate-001", prompt: "a dog", seconds: 4 })
    const { video } = yield* eventually(shown("linked"), ({ video_status }) => video_status === "completed")
    const own = yield* call(`/v1/videos/${video.id}`, { method: "GET", headers: bearer(secret) })
    const { url: expected } = JSON.parse(own.text)
    assert.isString(expected)
    for (const ask of [admin, member]) {
      assert.strictEqual(read(yield* ask(`/videos/${video.id}`)).url, expected)
      assert.strictEqual(read(yield* ask(`/videos?organization=${org}`)).data[0].url, expected)
    }
    yield* call(`/v1/videos/${video.id}`, { method: "DELETE", headers: bearer(secret) })
    assert.isNull(read(yield* admin(`/videos/${video.id}`)).url)
  })

  it.effect("shows a video with its job and its charge", function* () {
    const { admin, org, send, shown } = yield* begin
    yield* send("/videos", "clip", { model: "veo-3.1-fast-generate-001", prompt: "a dog", seconds: 4 })
    const request = yield* eventually(shown("clip"), ({ video }) => video.status === "completed")
    assert.strictEqual(request.timeline[1].detail, `${request.hold.amount_usd} USD reserved`)
    assert.deepInclude(request.video, { seconds: 4, price_usd: request.price.price_usd })
    assert.deepInclude(request.price, {
      charge_usd: request.charge_usd,
      why: "The price was fixed when the request was received."
    })
    assert.deepStrictEqual(request.price.parts, [
      { unit: "clip of 4 s", quantity: 1, rate_usd: request.charge_usd, per: "clip", amount_usd: request.charge_usd }
    ])
    // As where the charge comes between the reading of the row and that of the money.
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE request_log SET charge = 0 WHERE id = ${request.id}`
    assert.strictEqual((yield* shown("clip")).charge_usd, request.charge_usd)

    const { refund } = yield* LedgerAdmin
    const amount = NanoUsd(1n)
    yield* refund({ row: request.id, hold: request.hold.id, amount, note: "a still picture" })
    const [listed] = read(yield* admin(`/videos?organization=${org}`)).data
    assert.deepInclude(listed, { charge_usd: request.price.charge_usd, refunded_usd: 0.000000001 })
    assert.deepInclude(yield* shown("clip"), { refunded_usd: 0.000000001 })
  })
})
