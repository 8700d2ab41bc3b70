import { Effect, Redacted } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { assertRefused, badRequest, type Refusal, refusals, type Sent } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/MediaClient.ts"
import { draw, edit, gateway, keyed, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply, text } from "../../harness/upstream/FakeUpstream.ts"
import { asked, painting, paints } from "../../harness/upstream/Replies.ts"
import { onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { filePart, formOf, formType, textPart } from "../body/Forms.ts"

const encoded = painting.toString("base64")
const served = gateway({
  art: {
    variants: [
      { resolution: "1K", sizes: ["1024x1024", "1536x1024"], price_usd: 0.04 },
      { resolution: "2K", price_usd: 0.08 }
    ]
  },
  other: {},
  pair: { routes: [onFirst, onSecond] }
})

const formed = (boundary: string, more: Readonly<Record<string, string>> = {}, reference: Uint8Array = painting) => {
  const fields = Object.entries({ model: "art", prompt: "a cat", ...more })
  return formOf([...fields.map(([name, value]) => textPart(name, value)), filePart("image[]", reference)], boundary)
}
const withForm = (boundary: string): Sent => ({
  headers: { ...keyed("k").headers, "content-type": formType(boundary) }
})

const reused = badRequest("This `Idempotency-Key` was used with a different request.")

/** Ways in which a request can fail, and how the model is called that meets them. */
const failures: ReadonlyArray<
  readonly [what: string, model: string, replies: ReadonlyArray<Reply>, refusal: Refusal, more?: object]
> = [
  [
    "moderation",
    "art",
    [json(400, { error: { message: "no", type: "user_error", code: "moderation_blocked" } })],
    refusals.moderated
  ],
  ["a rejection", "art", [json(400, { error: { message: "no", param: "prompt" } })], refusals.rejected],
  ["an error", "art", [json(500, {})], refusals.upstream],
  ["no route left", "pair", [json(503, {})], refusals.allFailed("second", 599)],
  ["a page for a picture", "art", [text(200, "text/html", "<html>")], refusals.upstream],
  [
    "an invalid reference",
    "art",
    [],
    refusals.unusable("The image is not a complete PNG, JPEG, WebP or GIF."),
    { image: Buffer.from("<html>").toString("base64") }
  ]
]

withLayer(served)("an idempotency key", (it) => {
  it.effect("is of the same request in a form or JSON, on either path", function* () {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    const calls = first.calls.length
    yield* first.script(paints())
    const made = yield* edit(customer, formed("first"), withForm("first"))
    imageOf(made)
    assert.isFalse(isReplay(made))
    const body = asked("art", { image: [`data:image/png;base64,${encoded}`] })
    const again = [
      yield* edit(customer, formed("second"), withForm("second")),
      yield* edit(customer, formed("third", { n: "1", size: "auto", user: "u" }), withForm("third")),
      yield* edit(customer, formed("fourth", { response_format: "url" }), withForm("fourth")),
      yield* edit(customer, body, keyed("k")),
      yield* draw(customer, { ...body, image: encoded }, keyed("k")),
      yield* draw(customer, { ...body, model: "vendor/art" }, keyed("k"))
    ]
    for (const answer of again) assert.deepStrictEqual([answer.text, isReplay(answer)], [made.text, true])
    assert.lengthOf(first.calls, calls + 1)
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("is refused with a different request, at no charge", function* () {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    const calls = first.calls.length
    yield* first.script(paints())
    const body = asked("art", { image: encoded })
    imageOf(yield* draw(customer, body, keyed("k")))
    const others = [
      { ...body, prompt: "a dog" },
      { ...body, model: "other" },
      { ...body, resolution: "2K" },
      { ...body, size: "1536x1024" },
      { ...body, aspect_ratio: "3:2" },
      { ...body, response_format: "b64_json" },
      { ...body, image: Buffer.concat([painting, Buffer.from("x")]).toString("base64") },
      { ...body, image: [encoded, encoded] },
      { ...body, image: "https://example.com/a.png" },
      asked("art")
    ]
    for (const other of others) assertRefused(yield* draw(customer, other, keyed("k")), reused)
    assert.isTrue(isReplay(yield* draw(customer, body, keyed("k"))))
    assert.lengthOf(first.calls, calls + 1)
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("belongs to its organization", function* () {
    const { first } = yield* Upstreams
    yield* first.script(paints(), paints())
    const customers = [yield* Served.customer(), yield* Served.customer()]
    const links = yield* Effect.forEach(customers, (one) =>
      Effect.map(draw(one, asked("art"), keyed("k")), (answer) => {
        assert.isFalse(isReplay(answer))
        return imageOf(answer).url
      })
    )
    assert.lengthOf([...new Set(links)], 2)
    for (const { spent } of customers) assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("replays nothing to a key that may not use the model", function* () {
    const { first } = yield* Upstreams
    const { create } = yield* ApiKeys
    const customer = yield* Served.customer()
    const keyFor = (models: ReadonlyArray<string>) =>
      Effect.map(create({ org: customer.org, models }), ({ secret }) => ({ secret: Redacted.value(secret) }))
    yield* first.script(paints())
    const made = yield* draw(customer, asked("art"), keyed("k"))
    const again = yield* draw(yield* keyFor(["a*"]), asked("art"), keyed("k"))
    assert.deepStrictEqual([again.text, isReplay(again)], [made.text, true])
    assertRefused(yield* draw(yield* keyFor(["other"]), asked("art"), keyed("k")), refusals.notAllowed("art"))
  })

  it.effect.each(["", "a b", "ä", "x".repeat(256)])("of %j is refused without an image", function* (key) {
    const customer = yield* Served.customer({ nanoUsd: 0n })
    const refusal = badRequest("`Idempotency-Key` must be 1 to 255 visible ASCII characters.")
    assertRefused(yield* draw(customer, asked("art"), keyed(key)), refusal)
  })

  it.effect.each(failures)("is free again after %s", function* ([, model, replies, refusal, more]) {
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    yield* first.script(...replies)
    assertRefused(yield* draw(customer, asked(model, more), keyed("k")), refusal)
    assert.strictEqual(yield* spent, 0n)
    yield* first.script(paints())
    const retry = yield* draw(customer, asked(model), keyed("k"))
    imageOf(retry)
    assert.isFalse(isReplay(retry))
    const again = yield* draw(customer, asked(model), keyed("k"))
    assert.deepStrictEqual([again.text, isReplay(again)], [retry.text, true])
    assert.strictEqual(yield* spent, usualPrice)
  })

  it.effect("is free again after 402, and its replay needs neither credits nor room under a cap", function* () {
    const books = yield* LedgerAdmin
    const { first } = yield* Upstreams
    const cap = { amount: usualPrice, period: "day" } as const
    const { funds, ...customer } = yield* Served.customer({ nanoUsd: usualPrice - 1n, cap })
    assertRefused(yield* draw(customer, asked("art"), keyed("k")), refusals.shortOf(usualPrice, usualPrice - 1n))
    yield* books.topUp({ org: customer.org, amount: NanoUsd(1n), note: "a nano-dollar" })
    yield* first.script(paints())
    const made = yield* draw(customer, asked("art"), keyed("k"))
    imageOf(made)
    assert.deepStrictEqual(yield* funds, { available: 0n, balance: 0n, held: 0n })
    assertRefused(yield* draw(customer, asked("art"), keyed("l")), refusals.capped("day"))
    const again = yield* draw(customer, asked("art"), keyed("k"))
    assert.deepStrictEqual([again.text, isReplay(again)], [made.text, true])
  })

  it.effect("leaves a ledger that verifies", function* () {
    const { violations } = yield* (yield* LedgerAdmin).verify
    assert.deepStrictEqual([...violations], [])
  })
})
