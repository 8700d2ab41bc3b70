import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, bearer, call, chat, chatPath, refusals, talk } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, gateway, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { open } from "../connections/RawSocket.ts"

const reads = ["/v1/models", "/v1/credits", "/v1/videos", "/v1/openapi.json"]
const misspelt = {
  "/V1/models": "/v1/models",
  "/v1/Models": "/v1/models",
  "/v1/MODELS": "/v1/models",
  "/v1/openapi.JSON": "/v1/openapi.json",
  "/Healthz": undefined,
  "/READYZ": undefined,
  "/Metrics": undefined
}
const lenient = (path: string) => [path, `${path}/`, `/${path}`, path.replace("/v1/", "/v1//"), `${path}?x=1`]

withLayer(gateway({ talk: {} }))("a path", (it) => {
  it.effect("is unknown in another letter case", function* () {
    const { secret } = yield* openAccount({})
    for (const [path, meant] of Object.entries(misspelt)) {
      const refusal = meant === undefined ? refusals.noEndpoint : refusals.meantPath(meant)
      assertRefused(yield* call(path, { headers: bearer(secret) }), refusal)
    }
    for (const path of ["/v1/chat/Completions", "/V1/chat/completions"]) {
      assertRefused(yield* call(path, { headers: bearer(secret), body: talk("talk") }), refusals.meantPath(chatPath))
    }
    yield* (yield* Upstreams).first.script(answers())
    assert.strictEqual((yield* chat({ secret }, talk("talk"))).status, 200)
  })

  it.effect("may have a doubled or a trailing slash", function* () {
    const { secret } = yield* openAccount({})
    for (const path of reads.flatMap(lenient)) {
      assert.strictEqual((yield* call(path, { headers: bearer(secret) })).status, 200, path)
    }
    for (const path of lenient(chatPath)) {
      yield* (yield* Upstreams).first.script(answers())
      const answer = yield* call(path, { method: "POST", headers: bearer(secret), body: talk("talk") })
      assert.strictEqual(answer.status, 200, path)
    }
  })

  it.effect("under /v1 is unknown to HEAD in every spelling, with and without a key", function* () {
    const { secret } = yield* openAccount({})
    const paths = [...reads, chatPath, "/v1/videos/vid_1", "/v1/nowhere"].flatMap(lenient)
    for (const path of [...paths, "/%76%31/models", "/v1/model%73"]) {
      for (const headers of [{}, bearer(secret)]) {
        const answer = yield* call(path, { method: "HEAD", headers })
        assert.strictEqual(answer.status, 404, path)
        assert.strictEqual(answer.headers.get("content-type"), "application/json; charset=utf-8")
      }
    }
  })

  it.scoped("beside /v1 answers HEAD as it answers GET, without the body", function* () {
    for (const path of ["/healthz", "/readyz", "/healthz/", "//readyz"]) {
      const got = yield* call(path)
      const head = yield* call(path, { method: "HEAD" })
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      for (const name of ["content-type", "content-length"]) {
        assert.strictEqual(head.headers.get(name), got.headers.get(name))
      }
    }
    const connection = yield* open
    yield* connection.write("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert.isTrue((yield* connection.closed).endsWith("\r\n\r\n"))
  })
})
