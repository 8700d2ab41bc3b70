import { inspect } from "node:util"
import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { agentWays, chatApis, chatCompletions } from "../../harness/client/ChatApis.ts"
import { type Answer, bearer, call, chat, post, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, sse } from "../../harness/upstream/FakeUpstream.ts"
import { chunk, gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { parseCsv } from "../admin/CsvText.ts"

const idOf = ({ headers }: Answer) => headers.get("x-request-id") ?? assert.fail("no request id")
const errorIn = ({ text }: Answer) => JSON.parse(text).error
/** Messages has no `param` on the wire. */
const toldBy = (answer: Answer, param: string | null = errorIn(answer).param ?? null) => {
  const { hint = null, message } = errorIn(answer)
  return { param, message, hint }
}

type Body = Readonly<Record<string, unknown>>
const secretPrompt = "the moon landing of my grandmother"
const picture = { model: "gpt-image-2", prompt: secretPrompt }
const clip = { model: "veo-3.1-fast-generate-001", prompt: secretPrompt }
const talking = talk("gemini-3.6-flash", secretPrompt)
const long = "x".repeat(3_000)

const refused: ReadonlyArray<readonly [what: string, path: string, body: Body, param: string | null]> = [
  ["a chat", "/v1/chat/completions", { ...talking, n: 2 }, "n"],
  ["a chat with an unknown model", "/v1/chat/completions", talk("gemini-3.6-flsh", secretPrompt), "model"],
  ["a streamed chat", "/v1/chat/completions", { ...talking, temperature: 9, stream: true }, "temperature"],
  ["a response", "/v1/responses", { model: talking.model, input: 7 }, "input"],
  ["a message", "/v1/messages", { ...talking, max_tokens: 0 }, "max_tokens"],
  ["a chat whose provider moderates", "/v1/chat/completions", talk(talking.model, "[sandbox moderation]"), null],
  ["an image", "/v1/images/generations", { ...picture, n: 2 }, "n"],
  ["an image of an odd resolution", "/v1/images/generations", { ...picture, resolution: "9K" }, "resolution"],
  ["an edit", "/v1/images/edits", picture, "image"],
  ["an edit of no picture", "/v1/images/edits", { ...picture, image: Buffer.from("none").toString("base64") }, "image"],
  ["a video", "/v1/videos", { ...clip, seconds: "soon" }, "seconds"],
  ["a video of another surface's model", "/v1/videos", { ...clip, model: picture.model }, "model"],
  ["a video whose provider moderates", "/v1/videos", { ...clip, prompt: "[sandbox moderation]" }, null]
]

const sandbox = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

/** One request in each view of the log, the operators' first. */
const views = Effect.fnUntraced(function* (
  { org, secret }: { readonly org: Served.Customer["org"]; readonly secret: string },
  id: string
) {
  const { url } = yield* Served.ServedGateway
  const operator = adminAt(url, (yield* hire("read")).token)
  const member = adminAt(url, (yield* hire("read", org)).token)
  const own = yield* call(`/v1/usage/requests/${id}`, { headers: bearer(secret) })
  const [listed] = read(yield* operator(`/requests?search=${id}`)).data
  const [listedToMember] = read(yield* member(`/requests?search=${id}`)).data
  const [row] = parseCsv((yield* member(`/requests.csv?search=${id}`)).text)
  const { error_hint, error_message, error_param } = row ?? {}
  const cells = { param: error_param || null, message: error_message, hint: error_hint || null }
  const shown = read(yield* operator(`/requests/${id}`))
  const shownToMember = read(yield* member(`/requests/${id}`))
  const documents = [listed, listedToMember, shown, shownToMember, read(own)]
  return { errors: [...documents.map(({ error }) => error), cells], shown }
})

withLayer(sandbox)("the reason of a refusal", (it) => {
  it.effect.each(refused)("is kept and shown in every view: %s", function* ([, path, body, param]) {
    const account = yield* openAccount({})
    const answer = yield* post(path)(account, body)
    assert.isAtLeast(answer.status, 400, answer.text)
    const told = toldBy(answer, param)
    const row = yield* soon(Served.logged(idOf(answer)))
    assert.deepStrictEqual<unknown>(row.error, told)
    assert.notInclude(inspect(row, { depth: 9 }), secretPrompt)
    const { errors, shown } = yield* views(account, idOf(answer))
    for (const error of errors) assert.deepStrictEqual(error, told)
    assert.include(shown.timeline.find(({ event }: { event: string }) => event === "answered").detail, told.message)
  })

  it.effect("is kept for limits and caps of a key too, with its hint", function* () {
    for (const [account, refusal] of [
      [{ scopes: ["videos"] as const }, refusals.scope],
      [{ nanoUsd: 0n }, refusals.insufficient],
      [{ models: ["claude-*"] }, refusals.notAllowed(talking.model)],
      [{ cap: { amount: 0n, period: "day" as const } }, refusals.capped("day")]
    ] as const) {
      const answer = yield* chat(yield* openAccount(account), talking)
      chatCompletions.assertRefused(answer, refusal)
      const { error } = yield* soon(Served.logged(idOf(answer)))
      assert.deepStrictEqual<unknown>(error, toldBy(answer))
    }
    const account = yield* openAccount({ rpm: 1 })
    yield* chat(account, talking)
    const answer = yield* chat(account, talking)
    chatCompletions.assertRefused(answer, refusals.limited)
    assert.deepStrictEqual<unknown>((yield* soon(Served.logged(idOf(answer)))).error, toldBy(answer))
  })

  it.effect("cuts values of the request at 200 characters, and omits invalid text", function* () {
    const account = yield* openAccount({})
    const message = { role: "user", content: [{ type: "text", text: "hi" }, { type: `a\u0000 ${long}` }] }
    for (const [path, body] of [
      ["/v1/chat/completions", talk(long)],
      ["/v1/chat/completions", { model: talking.model, messages: [message] }],
      ["/v1/messages", { model: talking.model, max_tokens: 5, messages: [message] }],
      ["/v1/responses", { model: talking.model, input: [{ type: long }] }],
      ["/v1/images/generations", { ...picture, resolution: long }]
    ] as const) {
      const answer = yield* post(path)(account, body)
      assert.isAtLeast(answer.status, 400)
      const { error } = yield* soon(Served.logged(idOf(answer)))
      assert.notMatch(JSON.stringify(error), /x{201}/)
      assert.isNotEmpty(error?.message)
    }
  })

  it.effect("is absent from successful requests", function* () {
    const account = yield* openAccount({})
    const answer = yield* chat(account, talking)
    assert.strictEqual(answer.status, 200)
    yield* soon(Served.logged(idOf(answer)))
    for (const error of (yield* views(account, idOf(answer))).errors.slice(0, -1)) assert.isNull(error)
  })
})

/** A provider's error that quotes the prompt and has details for the operator only. */
const quoting = json(400, {
  error: {
    type: "invalid_request_error",
    message: `Invalid value '${secretPrompt}' at 'messages[0].content' in req_abcdef123456, key sk-first-hush.`
  }
})

const models = Object.fromEntries(
  chatApis.flatMap(({ path }) => ["whole", "broken"].map((kind) => [`${kind}-${path.slice(4)}`, {}]))
)

withLayer(gateway({ talk: {}, ...models }))("the reason of a provider's refusal", (it) => {
  it.effect("is kept as in the answer, without the prompt that the provider quotes", function* () {
    const { first } = yield* Upstreams
    for (const way of chatApis) {
      yield* first.script(quoting)
      const answer = yield* way.send(yield* openAccount({}), talk("talk", secretPrompt))
      assert.strictEqual(answer.status, 400)
      const row = yield* soon(Served.logged(idOf(answer)))
      assert.notInclude(inspect(row, { depth: 9 }), secretPrompt)
      const reason = "Invalid value '…' at 'messages[0].content' in [id], key [key]."
      const message = agentWays.includes(way) ? reason : "Upstream rejected the request."
      assert.deepStrictEqual(row.error, { param: null, message, hint: null })
    }
  })

  it.effect("is kept for failed answers and streams, in every dialect", function* () {
    const { first } = yield* Upstreams
    for (const way of chatApis) {
      const name = way.path.slice(4)
      const account = yield* openAccount({})
      yield* first.script(json(500, {}))
      const failed = yield* way.send(account, talk(`whole-${name}`))
      assert.strictEqual(failed.status, 502)
      const row = yield* soon(Served.logged(idOf(failed)))
      assert.deepStrictEqual<unknown>(row.error, toldBy(failed, null))
      yield* first.script(sse(chunk({ content: "Half a" })))
      const broken = yield* way.send(account, { ...talk(`broken-${name}`), stream: true })
      way.assertBroken(broken, refusals.upstream)
      const { code, error, status } = yield* soon(Served.logged(idOf(broken)))
      assert.deepStrictEqual([status, code], [200, "stream_error"])
      assert.deepStrictEqual(error, { param: null, message: refusals.upstream.message, hint: null })
    }
  })
})
