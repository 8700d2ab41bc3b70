import { Effect } from "effect"
import { assertRefused, call, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const meant = (path: string) => ({ ...refusals.noEndpoint, message: `Unknown endpoint. Did you mean ${path}?` })

withLayer(Served.layer(Effect.succeed({ env: { SANDBOX: "true" } })))("an unknown path", (it) => {
  it.effect.each([
    ["POST", "/chat/completions", "/v1/chat/completions"],
    ["POST", "/chat/completions/?a=b", "/v1/chat/completions"],
    ["GET", "/chat/completions", "/v1/chat/completions"],
    ["POST", "/v1/v1/chat/completions", "/v1/chat/completions"],
    ["POST", "/v1/v1/v1/messages", "/v1/messages"],
    ["POST", "/messages/count_tokens", "/v1/messages/count_tokens"],
    ["POST", "/responses", "/v1/responses"],
    ["POST", "/images/edits", "/v1/images/edits"],
    ["GET", "/videos/vid_1/content", "/v1/videos/{id}/content"],
    ["GET", "/v1/v1/models", "/v1/models"],
    ["GET", "/usage/requests/req_1", "/v1/usage/requests/{request_id}"],
    ["GET", "/openapi.json", "/v1/openapi.json"]
  ] as const)("that lacks /v1, or has it twice, is told: %s %s", function* ([method, path, hint]) {
    assertRefused(yield* call(path, { method, ...(method === "POST" ? { body: {} } : {}) }), meant(hint))
  })

  it.effect("of which no endpoint is known even so gets no hint, and neither does another method", function* () {
    const others = ["/chat", "/v1", "/v1/v1", "/v2/chat/completions", "/v1/chat", "/v1/responses/resp_1", "/metric"]
    for (const path of others) assertRefused(yield* call(path), refusals.noEndpoint)
    for (const path of ["/v1/chat/completions", "/v1/images/edits"])
      assertRefused(yield* call(path), refusals.noEndpoint)
    assert.strictEqual((yield* call("/models", { method: "HEAD" })).status, 404)
  })
})
