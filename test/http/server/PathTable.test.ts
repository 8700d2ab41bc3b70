import { HttpApi } from "@effect/platform"
import { Api } from "../../../src/http/Api.ts"
import { assertRefused, callAt, refusals } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { layer, MediaServer } from "../MediaServer.ts"

const defined: Array<{ readonly method: string; readonly path: string }> = []
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { method, path } }) => defined.push({ method, path })
})

withLayer(layer)("the pipeline", (it) => {
  it.effect.each(defined)(
    "serves $method $path of the contract, and looks for a key first",
    function* ({ method, path }) {
      const { url } = yield* MediaServer
      const answer = yield* callAt(`${url}${path.replaceAll(/:\w+/g, "made-up")}`, { method })
      assert.strictEqual(answer.status, 401, answer.text)
    }
  )

  it.effect("knows no path with a wrong escape, whoever asks", function* () {
    const { url } = yield* MediaServer
    for (const path of ["/v1/models/%zz", "/v1/videos/%ff", "/v1/usage/requests/%"]) {
      assertRefused(yield* callAt(`${url}${path}`), refusals.noEndpoint)
    }
  })

  it.effect("knows an endpoint by its own methods alone", function* () {
    const { url } = yield* MediaServer
    for (const [method, path, refusal] of [
      ["DELETE", "/v1/models", refusals.wrongMethod("/v1/models", "GET")],
      ["PUT", "/v1/videos", refusals.wrongMethod("/v1/videos", "GET and POST")],
      ["POST", "/v1/videos/made-up", refusals.wrongMethod("/v1/videos/{id}", "GET and DELETE")],
      ["GET", "/v1/chat/completions", refusals.wrongMethod("/v1/chat/completions", "POST")],
      ["POST", "/healthz", refusals.noEndpoint]
    ] as const) {
      assertRefused(yield* callAt(`${url}${path}`, { method }), refusal)
    }
  })
})
