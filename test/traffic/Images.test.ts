import { Effect } from "effect"
import { assertRefused, refusals } from "../harness/client/HttpCalls.ts"
import { editForm, imageOf } from "../harness/client/MediaClient.ts"
import { gif, png } from "../harness/fixtures/TinyMedia.ts"
import { draw, edit, gateway, usualPrice } from "../harness/gateway/ImageGateway.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { json, type Received, type Reply } from "../harness/upstream/FakeUpstream.ts"
import { asked, painted, paints } from "../harness/upstream/Replies.ts"
import { onFirst, onSecond, Upstreams } from "../harness/upstream/Upstreams.ts"
import { asking as askingOf, failing } from "../http/errors/ProviderFailures.ts"

const asking = askingOf(draw)
const image = gif.toString("base64")
const both = { routes: [onFirst, onSecond] }

/** The last request that reached the first host. */
const lastCall = Effect.map(Upstreams, ({ first: { calls } }): Received => {
  const last = calls.at(-1)
  if (last === undefined) throw new Error("nothing reached the host")
  return last
})

/** Half of a surrogate pair: JavaScript writes it as an escape, and no UTF-8 has it. */
const half = "\ud83d"

const form = (fields: FormData) =>
  Effect.promise(async () => {
    const request = new Request("http://localhost", { method: "POST", body: fields })
    return {
      body: new Uint8Array(await request.arrayBuffer()),
      headers: { "content-type": request.headers.get("content-type") ?? "" }
    }
  })

withLayer(gateway({ plain: {}, moderated: both, filtered: both, account: both, masked: {}, once: {} }))(
  "traffic of images",
  (it) => {
    it.effect.each<readonly [where: string, prompt: string, sent: string]>([
      ["at the end", `cut here: ${half}`, "cut here: \ufffd"],
      ["at the start", "\udc00 then", "\ufffd then"],
      ["alone", half, "\ufffd"],
      ["in the wrong order", "\udc00\ud83d", "\ufffd\ufffd"],
      ["beside a whole pair", `\u{1f600}${half}\u{1f600}`, "\u{1f600}\ufffd\u{1f600}"]
    ])("a lone surrogate %s of a prompt is replaced before it is sent", function* ([, prompt, sent]) {
      imageOf((yield* asking({ model: "plain", prompt }, { first: paints() })).answer)
      const { body, bytes } = yield* lastCall
      assert.notMatch(bytes.toString("utf8"), /\\ud[89a-f][0-9a-f]{2}(?!\\ud[c-f])/i)
      assert.propertyVal(body, "prompt", sent)
    })

    it.effect("a lone surrogate in the prompt of an edit is replaced before it is sent", function* () {
      const prompt = `cut here: ${half}`
      imageOf((yield* asking({ model: "plain", prompt, image }, { first: paints() })).answer)
      assert.include((yield* lastCall).bytes.toString("utf8"), "cut here: \ufffd")
    })

    it.effect.each<readonly [what: string, reply: Reply]>([
      ["DeepSeek's words", failing(400, { message: "Content Exists Risk", type: "invalid_request_error" })],
      ["Alibaba's code", failing(400, { code: "data_inspection_failed", message: "Input data may be inappropriate" })],
      [
        "Alibaba's code at the top",
        json(400, { code: "DataInspectionFailed", message: "Output data may be inappropriate" })
      ],
      ["GLM's number", failing(400, { code: "1301", message: "unsafe or sensitive content" })],
      ["GLM's number as a number", failing(400, { code: 1301, message: "unsafe or sensitive content" })],
      ["MiniMax inside a 200", json(200, { base_resp: { status_code: 1026, status_msg: "sensitive" }, data: null })]
    ])("moderation by %s is told as such, costs nothing, and no other route is asked", function* ([, reply]) {
      const customer = yield* Served.customer()
      const { answer, asked: calls } = yield* asking(asked("moderated"), { first: reply }, customer)
      assertRefused(answer, refusals.moderated)
      assert.deepStrictEqual(calls, [1, 0])
      assert.strictEqual(yield* customer.spent, 0n)
    })

    it.effect("MiniMax's empty balance inside a 200 is the account's fault, and the next route draws", function* () {
      const customer = yield* Served.customer()
      const empty = json(200, { base_resp: { status_code: 1008, status_msg: "insufficient balance" }, data: null })
      const drawn = yield* asking(asked("account"), { first: empty, second: paints() }, customer)
      imageOf(drawn.answer)
      assert.deepStrictEqual(drawn.asked, [1, 1])
      // The route whose account is at fault is closed: the next request goes past it.
      const next = yield* asking(asked("account"), { second: paints() }, customer)
      assert.deepStrictEqual(next.asked, [0, 1])
      assert.strictEqual(yield* customer.spent, 2n * usualPrice)
    })

    it.effect("a mask is passed on or refused by name, and never dropped in silence", function* () {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer()
      const before = first.calls.length
      const fields = editForm(png, { model: "masked" })
      fields.append("mask", new File([new Uint8Array(png)], "mask.png", { type: "image/png" }))
      const { body, headers } = yield* form(fields)
      const answer = yield* edit(customer, body, { headers })
      if (first.calls.length > before) {
        assert.include((yield* lastCall).bytes.toString("latin1"), 'name="mask"')
      } else {
        assert.strictEqual(answer.status, 400, answer.text)
        assert.deepInclude(JSON.parse(answer.text).error, { type: "invalid_request_error", param: "mask" })
      }
      assert.strictEqual(yield* customer.spent, 0n)
    })

    it.effect("an answer without any image is a failure, and costs nothing", function* () {
      const customer = yield* Served.customer()
      const empty = json(200, { ...painted(), data: [] })
      const { answer } = yield* asking(asked("once"), { first: empty }, customer)
      assertRefused(answer, refusals.upstream)
      assert.strictEqual(yield* customer.spent, 0n)
    })
  }
)
