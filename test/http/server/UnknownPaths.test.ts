import { Effect } from "effect"
import { assertRefused, call, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

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
    assertRefused(yield* call(path, { method, ...(method === "POST" ? { body: {} } : {}) }), refusals.meantPath(hint))
  })

  it.effect.each([
    ["/v1/chat/completion", "/v1/chat/completions"],
    ["/v1/Chat/Completions", "/v1/chat/completions"],
    ["/v2/chat/completions", "/v1/chat/completions"],
    ["/api/v1/chat/completions", "/v1/chat/completions"],
    ["/v1/chat/completions/chat/completions", "/v1/chat/completions"],
    ["/v1/completions", "/v1/chat/completions"],
    ["/completions", "/v1/chat/completions"],
    ["/v1/chat", "/v1/chat/completions"],
    ["/chat", "/v1/chat/completions"],
    ["/v1/image/generations", "/v1/images/generations"],
    ["/image/generation", "/v1/images/generations"],
    ["/v1/edits", "/v1/images/edits"],
    ["/v1/message", "/v1/messages"],
    ["/v1/video/vid_1", "/v1/videos/{id}"],
    ["/v1/videos/vid_1/contents", "/v1/videos/{id}/content"],
    ["/v1/model", "/v1/models"],
    ["/v1/credit", "/v1/credits"]
  ] as const)("that is near to one of the API is told: %s", function* ([path, hint]) {
    for (const method of ["GET", "POST"]) assertRefused(yield* call(path, { method }), refusals.meantPath(hint))
  })

  it.effect.each([
    ["GET", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/images/edits/", "POST"],
    ["GET", "/v1/responses?beta=true", "POST"],
    ["PATCH", "/v1/videos", "GET and POST"],
    ["OPTIONS", "/v1/models", "GET"]
  ] as const)("is one of another method, and its own are told: %s %s", function* ([method, path, methods]) {
    const [shown = ""] = path.replace(/\/$/, "").split("?")
    assertRefused(yield* call(path, { method }), refusals.wrongMethod(shown, methods))
  })

  it.effect("that is near to nothing gets no hint, nor does one that is hostile", function* () {
    const others = ["/v1", "/v1/v1", "/v1/responses/resp_1", "/metric", "/v1/embeddings", "/v1/images", "/v1/files"]
    const hostile = [
      `/v1/chat/completions${"s".repeat(5_000)}`,
      `/${"v1/".repeat(500)}chat/completions/x`,
      "/v1/chat/completions%00/%ff",
      `/${"chat/".repeat(30)}completions`
    ]
    for (const path of [...others, ...hostile]) assertRefused(yield* call(path), refusals.noEndpoint)
    assert.strictEqual((yield* call("/models", { method: "HEAD" })).status, 404)
  })

  it.effect("tells nothing of what is for operators and machines", function* () {
    const paths = [
      "/admin/v1/usage",
      "/admin/v1/usag",
      "/admin/v1/videos/x",
      "/admin",
      "/console/x",
      "/metrics",
      "/healthz/models"
    ]
    const headers = { "x-forwarded-for": "203.0.113.7" }
    for (const path of paths) assertRefused(yield* call(path, { headers }), refusals.noEndpoint)
    for (const path of ["/metrics", "/healthz", "/docs", "/admin/v1/organisations"]) {
      assertRefused(yield* call(path, { method: "PUT" }), refusals.noEndpoint)
    }
    const { text } = yield* call("/v1/organizations")
    assert.notInclude(text, "admin")
  })
})
