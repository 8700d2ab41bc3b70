import http from "node:http"
import { Effect } from "effect"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, badRequest, post as postOf } from "../../harness/client/HttpCalls.ts"
import { customer as messagesCustomer } from "../../harness/client/MessagesClient.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, DialectHosts, dialects, gateway, routeTo } from "../../harness/upstream/Dialects.ts"
import { filePart, formOf, formType, textPart } from "../body/Forms.ts"
import { gif } from "../images/ImageBodies.ts"
import { edits, generations, MediaServer, layer as mediaServer, post, videos } from "../MediaServer.ts"

const models = Object.fromEntries(dialects.map((dialect) => [dialect.name, [routeTo(dialect)]]))
const answer = { content: "fine", finish: "stop" } as const
const wrongTag = badRequest("`x-gateway-tag` must be 1 to 64 of A-Z, a-z, 0-9, dots, underscores and dashes.")

const messages = [{ role: "user", content: "hi" }]
const endpoints = [
  { path: "/v1/chat/completions", body: { messages } },
  { path: "/v1/responses", body: { input: "hi" } },
  { path: "/v1/messages", body: { messages, max_tokens: 100 } }
]
const ways = endpoints.flatMap((endpoint) => dialects.map((dialect) => ({ ...endpoint, dialect, name: dialect.name })))

const attributed = ({ endUser, tag }: RequestRow) => ({ endUser, tag })

withLayer(gateway(models))("whom a chat is for", (it) => {
  it.effect.each(ways)(
    "is in the log, and no provider sees it: $path to $name",
    function* ({ body, dialect, name, path }) {
      const host = (yield* DialectHosts).of(dialect)
      const customer = yield* Served.customer()
      for (const stream of [false, true]) {
        yield* host.script(answers(dialect, answer))
        const names = { user: "hush-ann", safety_identifier: "hush-bob", metadata: { user_id: "hush-eve" } }
        const sent = {
          headers: {
            "x-gateway-tag": "hush-Blue_1.x",
            "x-request-id": `${name}-${stream}-${path.slice(4)}`.replace("/", "-")
          }
        }
        const { headers, status, text } = yield* postOf(path)(
          customer,
          { ...body, ...names, model: name, stream },
          sent
        )
        assert.strictEqual(status, 200, text)
        const row = yield* Served.logged(headers.get("x-request-id"))
        assert.deepStrictEqual(attributed(row), { endUser: "hush-ann", tag: "hush-Blue_1.x" })
        const received = yield* host.received
        const told = JSON.stringify([received.body, received.headers])
        // What a customer keeps with a response is passed on as it is.
        const theirs = path === "/v1/responses" && name === "openai-responses" ? '"hush-eve"' : ""
        assert.notMatch(told.replace(theirs, ""), /hush-(ann|bob|eve|Blue)/)
      }
    }
  )

  const chosen: ReadonlyArray<readonly [path: string, names: object, expected: string | null]> = [
    ["/v1/chat/completions", {}, null],
    ["/v1/chat/completions", { user: "", safety_identifier: "bob" }, "bob"],
    ["/v1/chat/completions", { user: null, safety_identifier: null }, null],
    ["/v1/chat/completions", { user: 7, safety_identifier: ["bob"] }, null],
    ["/v1/chat/completions", { metadata: { user_id: "eve" } }, null],
    ["/v1/responses", { safety_identifier: "bob", metadata: { user_id: "eve" } }, "bob"],
    ["/v1/messages", { metadata: { user_id: "eve" } }, "eve"],
    ["/v1/messages", { safety_identifier: "bob", metadata: { user_id: "eve" } }, "bob"],
    ["/v1/messages", { metadata: { user_id: null } }, null],
    ["/v1/messages", { metadata: { user_id: { deep: "eve" } } }, null],
    ["/v1/chat/completions", { user: "a\u0000b\u0085c\ud800d\ue000" }, "a?b?c\ufffdd\ue000"],
    ["/v1/chat/completions", { user: "'; DROP TABLE request_log; --" }, "'; DROP TABLE request_log; --"],
    ["/v1/chat/completions", { user: "😀".repeat(200) }, "😀".repeat(128)],
    ["/v1/chat/completions", { user: `${"x".repeat(127)}😀y` }, `${"x".repeat(127)}😀`],
    ["/v1/chat/completions", { user: "x".repeat(1_000_000) }, "x".repeat(128)]
  ]
  it.effect("is the first that is there, cut to 128 characters", function* () {
    const [dialect] = dialects
    if (dialect === undefined) return assert.fail("no dialect")
    const host = (yield* DialectHosts).of(dialect)
    const customer = yield* Served.customer()
    for (const [path, names, expected] of chosen) {
      yield* host.script(answers(dialect, answer))
      const { body } = endpoints.find((endpoint) => endpoint.path === path) ?? assert.fail(path)
      const { headers, status, text } = yield* postOf(path)(customer, { ...body, ...names, model: dialect.name })
      assert.strictEqual(status, 200, text)
      const row = yield* Served.logged(headers.get("x-request-id"))
      assert.deepStrictEqual(attributed(row), { endUser: expected, tag: null }, JSON.stringify(names).slice(0, 200))
      const { body: received } = yield* host.received
      assert.notMatch(JSON.stringify(received), /"(user|safety_identifier|user_id)":/)
    }
  })

  it.effect("keeps the rest of a message's metadata, which its provider gets", function* () {
    const anthropic = dialects.find(({ name }) => name === "anthropic") ?? assert.fail("anthropic")
    const host = (yield* DialectHosts).of(anthropic)
    const customer = yield* Served.customer()
    const body = { messages, max_tokens: 100, model: "anthropic", metadata: { user_id: "eve", of_tomorrow: 1 } }
    yield* host.script(answers(anthropic, answer))
    yield* postOf("/v1/messages")(customer, body)
    const { body: received } = yield* host.received
    assert.deepStrictEqual(Object(received).metadata, { of_tomorrow: 1 })
  })

  it.effect.each(endpoints)("is refused with a tag that is none, at $path", function* ({ body, path }) {
    const customer = yield* Served.customer()
    for (const tag of ["", "x".repeat(65), "a b", "a,b", "ä", "a/b"]) {
      const asked = { ...body, model: "anthropic", user: "ann" }
      const refused = yield* postOf(path)(customer, asked, { headers: { "x-gateway-tag": tag } })
      assert.strictEqual(refused.status, 400)
      if (path === "/v1/chat/completions") assertRefused(refused, wrongTag)
      assert.include(refused.text, wrongTag.message)
      const row = yield* Served.logged(refused.headers.get("x-request-id"))
      assert.deepStrictEqual(
        [row.status, row.model, attributed(row)],
        [400, "anthropic", { endUser: "ann", tag: null }]
      )
    }
    const { headers } = yield* postOf(path)(customer, "{", { headers: { "x-gateway-tag": "x".repeat(64) } })
    const row = yield* Served.logged(headers.get("x-request-id"))
    assert.deepStrictEqual([row.status, attributed(row)], [400, { endUser: null, tag: "x".repeat(64) }])
    assert.strictEqual(yield* customer.spent, 0n)
  })

  it.effect("is refused with several tags", function* () {
    const { secret, url } = { ...(yield* Served.customer()), ...(yield* Served.ServedGateway) }
    const headers = ["Authorization", `Bearer ${secret}`, "X-Gateway-Tag", "one", "X-Gateway-Tag", "one"]
    const status = yield* Effect.async<number | undefined>((resume) => {
      http
        .request(`${url}/v1/chat/completions`, { method: "POST", headers: ["Host", new URL(url).host, ...headers] })
        .on("response", (response) => {
          response.resume()
          resume(Effect.succeed(response.statusCode))
        })
        .end(JSON.stringify({ model: "anthropic", messages }))
    })
    assert.strictEqual(status, 400)
  })

  it.effect("is told by the official clients", function* () {
    const [dialect] = dialects
    if (dialect === undefined) return assert.fail("no dialect")
    const host = (yield* DialectHosts).of(dialect)
    const { anthropic, openai } = yield* messagesCustomer()
    const [model, headers] = [dialect.name, { "x-gateway-tag": "blue" }]
    const turns = [{ role: "user" as const, content: "hi" }]
    yield* host.script(answers(dialect, answer), answers(dialect, answer), answers(dialect, answer))
    const chat = yield* calling(() =>
      openai.chat.completions.create({ model, messages: turns, user: "ann" }, { headers })
    )
    const response = yield* calling(() =>
      openai.responses.create({ model, input: "hi", safety_identifier: "bob" }, { headers })
    )
    const metadata = { user_id: "eve" }
    const message = yield* calling(() =>
      anthropic.messages.create({ model, max_tokens: 100, messages: turns, metadata }, { headers })
    )
    const ids = [chat._request_id, response._request_id, message._request_id]
    const rows = yield* Effect.forEach(ids, Served.logged)
    assert.deepStrictEqual(rows.map(attributed), [
      { endUser: "ann", tag: "blue" },
      { endUser: "bob", tag: "blue" },
      { endUser: "eve", tag: "blue" }
    ])
  })
})

withLayer(mediaServer)("whom an image or a video is for", (it) => {
  const image = { model: "draw", prompt: "a cat", image: gif }
  const media = [
    { path: generations, body: image },
    { path: edits, body: image },
    { path: videos, body: { model: "film", prompt: "a cat runs" } }
  ]
  const sent = { headers: { "x-gateway-tag": "blue" } }

  it.effect.each(media)("is in the log, and a wrong tag refused, at $path", function* ({ body, path }) {
    const account = yield* openAccount({})
    const whole = yield* post(account, path, { ...body, user: "ann", safety_identifier: "bob" }, sent)
    const row = yield* Served.logged(whole.headers.get("x-request-id"))
    assert.deepStrictEqual(attributed(row), { endUser: "ann", tag: "blue" })
    const refused = yield* post(account, path, body, { headers: { "x-gateway-tag": "a b" } })
    assertRefused(refused, wrongTag)
    const none = yield* Served.logged(refused.headers.get("x-request-id"))
    assert.deepStrictEqual(attributed(none), { endUser: null, tag: null })
  })

  it.effect.each([
    { path: edits, model: "draw" },
    { path: videos, model: "film" }
  ])("is in the log for a form, at $path", function* ({ model, path }) {
    const account = yield* openAccount({})
    const { url } = yield* MediaServer
    assert.isString(url)
    const parts = [textPart("model", model), textPart("prompt", "a cat"), filePart("image", Buffer.from(gif, "base64"))]
    const form = formOf([...parts, textPart("safety_identifier", "bob")])
    const headers = { ...sent.headers, "content-type": formType() }
    const answer = yield* post(account, path, form, { headers })
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    assert.deepStrictEqual(attributed(row), { endUser: "bob", tag: "blue" }, answer.text)
    const twice = formOf([...parts, textPart("user", "ann"), textPart("user", "bob")])
    const other = yield* post(account, path, twice, { headers })
    assert.isNull((yield* Served.logged(other.headers.get("x-request-id"))).endUser)
  })
})
