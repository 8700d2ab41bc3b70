import { explainReference, referenceProblems } from "../../../src/domain/Media.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, chat, refusals } from "../../harness/client/HttpCalls.ts"
import { dataUrl, grown, png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, hidden, onFirst, onSecond, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const served = gateway({ talk: { capabilities: ["vision", "tools"], routes: [onFirst, onSecond] } })

const url = dataUrl(grown(2_000_000), "image/png")
const image = (address: string) => ({ type: "image_url", image_url: { url: address } })
const tools = [
  {
    type: "function",
    function: { name: "f", parameters: { type: "object", properties: { "né😀": { enum: ["\ufffd", 1e21, -0.5] } } } }
  }
]
const messagesWith = (address: string) => [
  { role: "system", content: `"${"漢字😀\\\n".repeat(100_000)}` },
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":[1,"[,"]}' } }]
  },
  { role: "tool", content: "1", tool_call_id: "c" },
  { role: "user", content: [{ type: "text", text: "hi" }, image(address), image(dataUrl(png, "image/png"))] }
]
const bodyWithImage = (address: string) => ({ model: "talk", max_tokens: 9, messages: messagesWith(address), tools })
const sent = { model: hidden.model, max_tokens: 9, messages: messagesWith(url), tools }

withLayer(served)("a large request", (it) => {
  it.effect("reaches each provider unchanged and with its length", function* () {
    const { first, second } = yield* Upstreams
    const customer = yield* openAccount({})
    yield* first.script(json(503, { error: { message: "busy" } }))
    yield* second.script(answers())
    assert.strictEqual((yield* chat(customer, bodyWithImage(url))).status, 200)
    for (const { calls } of [first, second]) {
      const call = calls.at(-1)
      assert.deepStrictEqual(call?.body, sent)
      assert.strictEqual(call?.headers["content-length"], String(call?.bytes.length))
    }
    yield* first.script(streams("fine"))
    assert.include((yield* chat(customer, { ...bodyWithImage(url), stream: true })).text, "fine")
    assert.deepInclude(first.calls.at(-1)?.body, { ...sent, stream: true })
  })

  it.effect("with base64 in lines reaches the provider with the same base64 in one line", function* () {
    const { first } = yield* Upstreams
    const [prefix = "", base64 = ""] = url.split(",")
    for (const written of [base64.replaceAll(/.{76}/g, "$&\r\n"), base64.replaceAll("+", "-").replaceAll("/", "_")]) {
      yield* first.script(answers())
      assert.strictEqual((yield* chat(yield* openAccount({}), bodyWithImage(`${prefix},${written}`))).status, 200)
      assert.deepStrictEqual(first.calls.at(-1)?.body, sent)
    }
  })

  it.effect("whose pictures are invalid is refused", function* () {
    const { format, neitherUrl } = referenceProblems
    for (const [bad, problem, subject] of [
      [`${url}!`, format, "Image 1 of 2"],
      [url.replace("iVBOR", "AAAAA"), format, "Image 1 of 2"],
      [`https://a.test/${"a".repeat(9_000)}`, neitherUrl, "The image of `messages[3].content[1]`"]
    ] as const) {
      const noPicture = refusals.unusable(explainReference(problem, subject), "messages")
      assertRefused(yield* chat(yield* openAccount({}), bodyWithImage(bad)), noPicture)
    }
  })
})
