import { request } from "node:http"
import { text as textOf } from "node:stream/consumers"
import { Effect } from "effect"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import {
  type Answer,
  assertRefused,
  badRequest,
  bearer,
  callAt,
  refusals as common,
  type Sent
} from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const limitBytes = 262_144
const long = JSON.stringify({ name: "a".repeat(300_000) })

const send = (path: string, sent: Sent) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    callAt(`${url}${path}`, { ...sent, headers: { "content-type": "application/json", ...sent.headers } })
  )

/** Of a length that its head does not tell. */
const sendChunked = (path: string, token: string, body: string) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    Effect.async<Answer, Error>((resume) => {
      const headers = { ...bearer(token), "content-type": "application/json", "transfer-encoding": "chunked" }
      const sending = request(`${url}${path}`, { method: "POST", headers }, (response) =>
        textOf(response).then((text) =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              headers: new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)])),
              text
            })
          )
        )
      )
      sending.on("error", (error) => resume(Effect.fail(error)))
      sending.end(body)
    })
  )

withLayer(layer)("the body of an operator's request", (it) => {
  it.effect("that is too long is refused to those who may change something, whatever its head tells", function* () {
    const { admin, token } = yield* asOperator("write")
    assertRefused(yield* admin("/organizations", { body: long }), common.tooLarge(limitBytes))
    assertRefused(yield* sendChunked("/admin/v1/organizations", token, long), common.tooLarge(limitBytes))
    const short = JSON.stringify({ name: "a".repeat(50) })
    read(yield* sendChunked("/admin/v1/organizations", token, short), 201)
  })

  it.effect("is no form", function* () {
    const { admin } = yield* asOperator("write")
    const send = (type: string, body: string) => admin("/organizations", { body, headers: { "content-type": type } })
    const message = "Send the body as JSON with `Content-Type: application/json`, not as a form."
    for (const type of [
      "multipart/form-data; boundary=b",
      "multipart/form-data",
      "application/x-www-form-urlencoded"
    ]) {
      assertRefused(yield* send(type, "name=a"), badRequest(message))
    }
  })

  it.effect("may be empty, whatever type it has then", function* () {
    const { admin } = yield* asOperator("write")
    const headers = { "content-type": "application/x-www-form-urlencoded" }
    const { status } = yield* admin("/keys/key_none/revoke", { method: "POST", headers })
    assert.strictEqual(status, 404)
    for (const type of ["application/x-www-form-urlencoded", "multipart/form-data; boundary=b"]) {
      const unnamed = yield* admin("/organizations", { method: "POST", headers: { ...headers, "content-type": type } })
      assert.strictEqual(unnamed.status, 400)
    }
  })

  it.effect("is UTF-8 and not compressed, and may begin with a byte order mark", function* () {
    const { admin } = yield* asOperator("write")
    const create = (body: Buffer, headers: Record<string, string> = {}) =>
      admin("/organizations", { body, headers: { "content-type": "application/json", ...headers } })
    assertRefused(yield* create(Buffer.from([0x22, 0xff, 0x22])), badRequest("The body is not valid UTF-8."))
    const gzip = { "content-encoding": "gzip" }
    assertRefused(yield* create(Buffer.from("{}"), gzip), badRequest("Send the body without compression."))
    assertRefused(yield* create(Buffer.from("{")), badRequest("The body is not valid JSON."))
    read(yield* create(Buffer.from(`\ufeff${JSON.stringify({ name: "marked" })}`)), 201)
  })

  it.effect("is not looked at before the role", function* () {
    const { admin } = yield* asOperator("read")
    assertRefused(yield* send("/admin/v1/organizations", { body: long }), refusals.notSignedIn())
    assertRefused(yield* admin("/organizations", { body: long }), refusals.needs("write"))
  })

  it.effect("that is too long is refused where one signs in", function* () {
    const from = (forwarded: object) => send("/admin/v1/session", { body: long, headers: { ...forwarded } })
    assertRefused(yield* from({}), common.tooLarge(16_384))
    assertRefused(yield* from({ "x-forwarded-for": "203.0.113.7" }), common.noEndpoint)
  })

  it.effect("that is too long changes nothing of the answers of other endpoints", function* () {
    const { url } = yield* MediaServer
    assertRefused(yield* send("/v1/unknown", { body: long }), common.noEndpoint)
    assertRefused(yield* send("/v1/videos/vid_1", { method: "DELETE", body: long }), common.missingKey)
    assertRefused(yield* send("/v1/models", { method: "PUT", body: long }), common.wrongMethod("/v1/models", "GET"))
    const { status } = yield* callAt(`${url}/healthz`, { method: "POST", body: long })
    assert.strictEqual(status, 404)
  })
})
