import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import {
  type Answer,
  assertRefused,
  badRequest,
  bearer,
  call,
  chat,
  chatPath,
  ownId,
  type Refusal,
  refusals,
  talk
} from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, gateway, onAbsent, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { ask, open } from "../connections/RawSocket.ts"

const isPicture = "`picture` is an image model: use /v1/images/generations."
const meansTalk = "Did you mean `talk`?"

const limit = 200_000
const served = gateway(
  { talk: {}, plain: { family: "B", capabilities: [] }, absent: { routes: [onAbsent] } },
  { MAX_BODY_BYTES: String(limit) }
)

const text = JSON.stringify(talk("talk"))

/** What may be sent under any name that is no form, and a client's own picture of it. */
const accepted: ReadonlyArray<readonly [what: string, headers: Readonly<Record<string, string>>, body: unknown]> = [
  ["application/json", { "content-type": "application/json" }, text],
  ["application/json with a charset", { "content-type": "application/json; charset=utf-8" }, text],
  ["text/plain", { "content-type": "text/plain;charset=UTF-8" }, text],
  ["application/octet-stream", { "content-type": "application/octet-stream" }, text],
  ["no content type", { "content-type": "" }, Buffer.from(text)],
  ["an invalid content type", { "content-type": "multipart" }, text],
  ["the identity encoding", { "content-encoding": "identity" }, text],
  ["the identity encoding in other letters", { "content-encoding": "Identity" }, text],
  ["white space around", {}, `\r\n\t ${text} \n`],
  ["a byte order mark", {}, `\ufeff${text}`],
  ["a body of exactly the limit", {}, text.replace('"hi"', `"${"x".repeat(limit - text.length + 2)}"`)]
]

const form = badRequest("Send the body as JSON with `Content-Type: application/json`, not as a form.")
const compressed = badRequest("Send the body without compression.")
const notUtf8 = badRequest("The body is not valid UTF-8.")
const notJson = badRequest("The body is not valid JSON.")

const refused: ReadonlyArray<
  readonly [what: string, headers: Readonly<Record<string, string>>, body: unknown, refusal: Refusal]
> = [
  ["a form", { "content-type": "application/x-www-form-urlencoded" }, "model=talk", form],
  ["JSON sent as a form", { "content-type": "Application/X-WWW-Form-Urlencoded; charset=utf-8" }, text, form],
  ["a multipart form", { "content-type": "multipart/form-data; boundary=x" }, "--x--", form],
  ["gzip", { "content-encoding": "gzip" }, text, compressed],
  ["brotli", { "content-encoding": "br" }, text, compressed],
  ["gzip in other letters", { "content-encoding": "GZip" }, text, compressed],
  ["nothing", {}, "", notJson],
  ["half of it", {}, text.slice(0, -1), notJson],
  ["two of it", {}, text + text, notJson],
  ["a trailing comma", {}, `${text.slice(0, -1)},}`, notJson],
  ["NaN", {}, text.replace('"hi"', "NaN"), notJson],
  ["two byte order marks", {}, `\ufeff\ufeff${text}`, notJson],
  ["a byte order mark of UTF-16", {}, Buffer.from(`\ufeff${text}`, "utf16le"), notUtf8],
  ["a text that is no UTF-8", {}, Buffer.from(text.replace('"hi"', '"h\xff"'), "latin1"), notUtf8],
  [
    "what nests without end",
    {},
    "[".repeat(15_000) + "]".repeat(15_000),
    badRequest("The body must nest at most 128 levels deep.")
  ],
  ["one byte over the limit", {}, `${text}${" ".repeat(limit - text.length + 1)}`, refusals.tooLarge(limit)],
  ["an unknown model", {}, talk("nobody"), refusals.noModel("nobody")],
  ["a model of another surface", {}, talk("picture"), refusals.noModel("picture", "a chat", isPicture)],
  ["a model without a credential", {}, talk("absent"), refusals.noModel("absent")],
  ["an id that differs in case", {}, talk("Talk"), refusals.noModel("Talk", "a chat", meansTalk)],
  ["an id with a space", {}, talk("talk "), refusals.noModel("talk ", "a chat", meansTalk)],
  ["an id that is a word of JavaScript", {}, talk("__proto__"), refusals.noModel("__proto__")],
  ["an id that needs escaping", {}, talk('`"\n\u{1F600}'), refusals.noModel('`"\n\u{1F600}')],
  ["more than one answer", {}, { ...talk("talk"), n: 2 }, badRequest("`n` must be 1.", "n")],
  [
    "no messages",
    {},
    { model: "talk" },
    badRequest("`messages` is required and must be a non-empty array.", "messages")
  ],
  ["no model", {}, { messages: [] }, badRequest("`model` is required.", "model")],
  [
    "tools where there are none",
    {},
    { ...talk("plain"), tools: [{ type: "function", function: { name: "f" } }] },
    badRequest("`tools` is not available for `plain`.", "tools")
  ],
  [
    "an image without vision",
    {},
    {
      model: "plain",
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }] }
      ]
    },
    badRequest("Image input is not available for `plain`.", "messages")
  ],
  [
    "a search where there is none",
    {},
    { ...talk("talk"), web_search: true },
    badRequest("`web_search` is not available for `talk`.", "web_search")
  ],
  [
    "a format where there is none",
    {},
    { ...talk("talk"), response_format: { type: "json_object" } },
    badRequest("`response_format` is not available for `talk`.", "response_format")
  ],
  [
    "an effort that the model has not",
    {},
    { ...talk("talk"), reasoning_effort: "xhigh" },
    badRequest("`reasoning_effort` must be one of low, medium, high for `talk`.", "reasoning_effort")
  ]
]

const isFine = ({ headers, status, text }: Answer) => {
  assert.strictEqual(status, 200, text)
  assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
  assert.strictEqual(headers.get("retry-after"), null)
  assert.match(headers.get("x-request-id") ?? "", ownId)
}

withLayer(served)("the chat endpoint", (it) => {
  it.effect.each(accepted)("accepts %s", function* ([, headers, body]) {
    const { first } = yield* Upstreams
    yield* first.script(answers())
    isFine(yield* chat(yield* openAccount({}), body, { headers }))
  })

  it.effect.each(refused)("refuses %s", function* ([, headers, body, refusal]) {
    const { first } = yield* Upstreams
    const before = first.calls.length
    const { funds, ...customer } = yield* Served.customer()
    const opening = yield* funds
    const answer = yield* chat(customer, body, { headers })
    assertRefused(answer, refusal)
    assert.deepStrictEqual(yield* funds, opening)
    assert.lengthOf(first.calls, before)
  })

  it.scoped("refuses a body of unknown length at the limit, on a connection that can be used again", function* () {
    const { secret } = yield* openAccount({})
    const head = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n`
    const piece = `${(50_000).toString(16)}\r\n${" ".repeat(50_000)}\r\n`
    const connection = yield* open
    yield* connection.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
    for (let sent = 0; sent <= limit; sent += 50_000) yield* connection.write(piece)
    assertRefused(yield* connection.answer(1), refusals.tooLarge(limit))
    yield* connection.write(`${piece}0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.strictEqual((yield* connection.answer(2)).status, 200)
  })

  it.scoped("refuses a body announced as too long unread, even if it is sent", function* () {
    const { secret } = yield* openAccount({})
    const head = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\n`
    assertRefused(yield* ask(`${head}Content-Length: 99999999999\r\n\r\n`), refusals.tooLarge(limit))
    const connection = yield* open
    yield* connection.write(`${head}Content-Length: ${2 * limit}\r\n\r\n`)
    assertRefused(yield* connection.answer(1), refusals.tooLarge(limit))
    yield* connection.write(`${"x".repeat(2 * limit)}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.strictEqual((yield* connection.answer(2)).status, 200)
  })

  it.scoped.each([
    ["too long", "", refusals.tooLarge(limit)],
    ["under an unknown key", "x", refusals.invalidKey]
  ] as const)(
    "refuses a body %s so that a client that sends all of it first can read why",
    function* ([, spoilt, refusal]) {
      const bytes = 4 * 1024 * 1024
      const { secret } = yield* openAccount({})
      const head = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}${spoilt}\r\nConnection: close\r\n`
      const connection = yield* open
      connection.socket.pause()
      yield* connection.write(`${head}Content-Length: ${bytes}\r\n\r\n`)
      yield* Effect.sleep("200 millis")
      yield* connection.write(Buffer.alloc(bytes))
      yield* Effect.sleep("200 millis")
      connection.socket.resume()
      assertRefused(yield* connection.answer(1), refusal)
      yield* connection.closed
    }
  )

  it.effect("returns a client's request id when it is well-formed, and else its own", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* openAccount({})
    const asks = [
      { path: chatPath, body: talk("talk"), status: 200 },
      { path: chatPath, body: { ...talk("talk"), stream: true }, status: 200 },
      { path: chatPath, body: "{", status: 400 },
      { path: "/v1/models", status: 200 },
      { path: "/v1/nowhere", status: 404 },
      { path: "/healthz", status: 200 }
    ]
    const whole = "a".repeat(128)
    for (const { status, ...sent } of asks) {
      for (const id of ["x", "A-Za-z0-9._-", whole, `${whole}a`, "a b", "a/b", "", "é", "a,b"]) {
        if (status === 200 && sent.body !== undefined) yield* first.script(answers())
        const answer = yield* call(sent.path, { ...sent, headers: { ...bearer(secret), "x-request-id": id } })
        assert.strictEqual(answer.status, status)
        const isOwn = /^[\w.-]{1,128}$/.test(id)
        const told = answer.headers.get("x-request-id") ?? ""
        if (isOwn) assert.strictEqual(told, id)
        else assert.match(told, ownId)
      }
    }
  })

  it.effect("answers nothing but a 401 without a key", function* () {
    for (const path of [chatPath, "/v1/models", "/v1/credits"]) {
      const body = path === chatPath ? text : undefined
      assertRefused(yield* call(path, { body }), refusals.missingKey)
      assertRefused(yield* call(path, { body, headers: bearer("ggw_nobody") }), refusals.invalidKey)
    }
  })

  it.effect("answers a database failure with an internal error, without a charge or the cause", function* () {
    const sql = yield* SqlClient.SqlClient
    const { funds, ...customer } = yield* Served.customer()
    const opening = yield* funds
    const fresh = yield* openAccount({})
    const without = <A, E, R>(table: string, use: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        sql`ALTER TABLE ${sql(table)} RENAME TO hush`,
        () => use,
        () => Effect.orDie(sql`ALTER TABLE hush RENAME TO ${sql(table)}`)
      )
    for (const stream of [false, true]) {
      for (const table of ["open_holds", "rate_windows"]) {
        const answer = yield* without(table, chat(customer, { ...talk("talk"), stream }))
        assertRefused(answer, refusals.internal)
      }
    }
    assertRefused(yield* without("api_keys", chat(fresh, talk("talk"))), refusals.internal)
    assertRefused(yield* without("organizations", chat(fresh, talk("talk"))), refusals.internal)
    assert.deepStrictEqual(yield* funds, opening)
    yield* (yield* Upstreams).first.script(answers())
    isFine(yield* chat(fresh, talk("talk")))
  })
})
