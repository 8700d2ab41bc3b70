import { Effect } from "effect"
import { exposedHeaders } from "../../../src/http/server/Dispatch.ts"
import { openAccount } from "../../harness/client/Account.ts"
import {
  type Answer,
  assertRefused,
  bearer,
  block,
  call,
  chat,
  chatPath,
  ownId,
  refusals,
  soon,
  talk,
  unblock
} from "../../harness/client/HttpCalls.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, onFirst, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { published } from "../openapi/Published.ts"

const app = "https://app.example"
const models = { talk: {}, fails: { routes: [onFirst] } }
const served = (corsOrigins: string) =>
  gateway(models, corsOrigins === "" ? { TRUST_PROXY: "1" } : { CORS_ORIGINS: corsOrigins, TRUST_PROXY: "1" })

const sdkHeaders =
  "authorization,content-type,idempotency-key,x-request-id,x-gateway-tag,x-stainless-retry-count,x-stainless-lang"

const preflight = (path: string, origin: string, more: Readonly<Record<string, string>> = {}) =>
  call(path, {
    method: "OPTIONS",
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": sdkHeaders, ...more }
  })

const corsOf = ({ headers }: Pick<Answer, "headers">): Readonly<Record<string, string>> =>
  Object.fromEntries([...headers].filter(([name]) => name === "vary" || name.startsWith("access-control-")))

const readable = (origin: string) => ({
  "access-control-allow-origin": origin,
  "access-control-expose-headers": exposedHeaders.join(", "),
  ...(origin === "*" ? {} : { vary: "origin" })
})

const methods: Readonly<Record<string, string>> = {
  [chatPath]: "POST",
  "/v1/images/generations": "POST",
  "/v1/images/edits": "POST",
  "/v1/videos": "GET and POST",
  "/v1/videos/{id}/content": "GET",
  "/v1/models": "GET",
  "/v1/usage": "GET",
  "/v1/openapi.json": "GET"
}
const paths = [
  chatPath,
  "/v1/images/generations",
  "/v1/images/edits",
  "/v1/videos",
  "/v1/videos/vid_1/content",
  "/v1/models",
  "/v1/usage",
  "/v1/openapi.json",
  "/v1/nowhere",
  "//v1/models/",
  "/media/public/x.png"
]

/** Each a kind of answer, over the routes that Effect serves and over those that it does not. */
const variousAnswers = Effect.fnUntraced(function* (origin: string) {
  const { first } = yield* Upstreams
  const account = yield* openAccount({})
  const poor = yield* openAccount({ nanoUsd: 0n })
  const slow = yield* openAccount({ rpm: 1 })
  const headers = { origin }
  const blocked = { origin, "x-forwarded-for": "203.0.113.77" }
  yield* first.script(answers(), answers(), json(400, {}), answers())
  const whole = yield* chat(account, talk("talk"), { headers })
  const stream = yield* chat(account, { ...talk("talk"), stream: true }, { headers })
  const rejected = yield* chat(account, talk("fails"), { headers })
  yield* chat(slow, talk("talk"), { headers })
  yield* block("203.0.113.77")
  const read = call("/v1/models", { headers: { ...bearer(account.secret), ...blocked } })
  const denied = yield* soon(Effect.tap(read, ({ status }) => Effect.sync(() => assert.strictEqual(status, 403))))
  const given: ReadonlyArray<readonly [status: number, answer: Answer]> = [
    [200, whole],
    [200, stream],
    [400, rejected],
    [429, yield* chat(slow, talk("talk"), { headers })],
    [401, yield* chat({ secret: "ggw_nobody" }, talk("talk"), { headers })],
    [402, yield* chat(poor, talk("talk"), { headers })],
    [403, yield* chat(account, talk("talk"), { headers: blocked })],
    [403, denied],
    [404, yield* chat(account, talk("unknown"), { headers })],
    [200, yield* call("/v1/models", { headers: { ...bearer(account.secret), ...headers } })],
    [401, yield* call("/v1/credits", { headers })],
    [404, yield* call("/v1/nowhere", { headers })],
    [404, yield* call("/v1/models", { method: "OPTIONS", headers })],
    [404, yield* call("/media/public/nothing.png", { headers })]
  ]
  yield* unblock("203.0.113.77")
  return given
})

withLayer(served(`${app},http://localhost:3000`))("a gateway with origins", (it) => {
  it.effect.each(paths)("answers the preflight of %s without a key", function* (path) {
    for (const origin of [app, "http://localhost:3000"]) {
      const answer = yield* preflight(path, origin)
      assert.deepStrictEqual([answer.status, answer.text], [204, ""])
      assert.match(answer.headers.get("x-request-id") ?? "", ownId)
      assert.deepStrictEqual(corsOf(answer), {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": sdkHeaders,
        "access-control-max-age": "7200",
        vary: "origin, access-control-request-headers"
      })
    }
  })

  it.effect("lets every answer be read at its origins, failures and streams too", function* () {
    for (const [status, answer] of yield* variousAnswers(app)) {
      assert.strictEqual(answer.status, status, answer.text)
      assert.deepStrictEqual(corsOf(answer), readable(app), answer.text)
    }
  })

  it.effect("tells other origins nothing, and caches that answers differ by origin", function* () {
    for (const origin of ["https://other.example", "null", `${app}.evil.example`, "http://app.example"]) {
      const answer = yield* preflight(chatPath, origin)
      assertRefused(answer, refusals.wrongMethod(chatPath, "POST"))
      assert.deepStrictEqual(corsOf(answer), { vary: "origin" })
    }
    assert.deepStrictEqual(corsOf(yield* call("/v1/models")), { vary: "origin" })
    const usage = yield* call("/v1/usage", { headers: bearer((yield* openAccount({})).secret) })
    assert.deepStrictEqual([usage.status, corsOf(usage)], [200, { vary: "origin, accept" }])
  })

  it.effect("keeps what operators and machines call to itself", function* () {
    for (const path of ["/healthz", "/readyz", "/metrics", "/nowhere"]) {
      assert.deepStrictEqual(corsOf(yield* call(path, { headers: { origin: app } })), {})
      assertRefused(yield* preflight(path, app), refusals.noEndpoint)
    }
  })

  it.effect("allows no headers whose names are none, or too long", function* () {
    for (const names of ["x y", "x,,y", "<x>", `x-${"y".repeat(5000)}`]) {
      const answer = yield* preflight(chatPath, app, { "access-control-request-headers": names })
      assert.strictEqual(answer.status, 204)
      assert.isFalse(answer.headers.has("access-control-allow-headers"))
    }
  })
})

withLayer(served("*"))("a gateway for every origin", (it) => {
  it.effect("lets every page call, without credentials of the browser's own", function* () {
    const { headers, status } = yield* preflight(chatPath, "https://any.example")
    assert.strictEqual(status, 204)
    assert.strictEqual(headers.get("access-control-allow-origin"), "*")
    assert.isFalse(headers.has("access-control-allow-credentials"))
    for (const [status, answer] of yield* variousAnswers("null")) {
      assert.strictEqual(answer.status, status, answer.text)
      assert.deepStrictEqual(corsOf(answer), readable("*"))
    }
  })
})

withLayer(served(""))("a gateway without origins", (it) => {
  it.effect("knows no preflight, and says nothing of origins", function* () {
    for (const path of paths) {
      const answer = yield* preflight(path, app)
      const shown = path.replace("vid_1", "{id}").replace("//v1/models/", "/v1/models")
      const taken = methods[shown]
      assertRefused(answer, taken === undefined ? refusals.noEndpoint : refusals.wrongMethod(shown, taken))
      assert.deepStrictEqual(corsOf(answer), {})
    }
    for (const [status, answer] of yield* variousAnswers(app)) {
      assert.strictEqual(answer.status, status)
      assert.deepStrictEqual(corsOf(answer), {})
    }
  })
})

describe("the exposed headers", () => {
  it("are all that the OpenAPI document names", () => {
    const { document } = published([{ id: "c", surface: "chat" }])
    for (const operations of Object.values(document.paths)) {
      for (const { responses } of Object.values(operations)) {
        for (const response of Object.values(responses)) {
          assert.includeMembers(exposedHeaders, Object.keys(Object(Reflect.get(response, "headers"))))
        }
      }
    }
  })
})
