import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { chatApis } from "../../harness/client/ChatApis.ts"
import {
  assertRefused,
  badRequest,
  bearer,
  block,
  call,
  chatPath,
  type Refusal,
  rateOf,
  refusals,
  soon,
  talk
} from "../../harness/client/HttpCalls.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { gateway, onAbsent, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { ask } from "../connections/RawSocket.ts"

const isPicture = "`picture` is an image model: use /v1/images/generations."

const served = gateway(
  {
    talk: {},
    strict: { family: "C", capabilities: [] },
    // Each of its own, so that no circuit opens.
    ...Object.fromEntries(
      chatApis.map(({ path }) => [`down${path}`, { routes: [{ provider: "refusing", model: "x" }] }])
    ),
    absent: { routes: [onAbsent] }
  },
  { TRUST_PROXY: "1", MAX_BODY_BYTES: "100000" }
)

const blocked = { "x-forwarded-for": "203.0.113.9" }
const methods = ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "POST"]
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  ...Object.fromEntries(chatApis.map(({ path }) => [path, ["POST"]])),
  "/v1/models": ["GET"],
  "/v1/credits": ["GET"],
  "/v1/openapi.json": ["GET"],
  "/healthz": ["GET", "HEAD"],
  "/readyz": ["GET", "HEAD"],
  "/metrics": ["GET", "HEAD"]
}
const wrongMethods = Object.entries(known).flatMap(([path, allowed]) =>
  methods.filter((method) => !allowed.includes(method)).map((method) => ({ method, path }))
)

/** Of what is beside the API nothing is told. */
const wrongMethodAt = (path: string): Refusal =>
  path.startsWith("/v1/") ? refusals.wrongMethod(path, (known[path] ?? []).join(" and ")) : refusals.noEndpoint

/** The refusals at a path, in its own words. */
const assertRefusedAt = (path: string, ...refused: Parameters<typeof assertRefused>) =>
  (chatApis.find((way) => way.path === path) ?? { assertRefused }).assertRefused(...refused)

const hot = { ...talk("talk"), temperature: 9 }
const { messages } = hot

/** Each is wrong in two ways at least; the earlier one is what the client hears of. */
const bodies: ReadonlyArray<readonly [earlier: string, later: string, body: unknown, refusal: Refusal]> = [
  ["JSON", "model", "{", badRequest("The body is not valid JSON.")],
  ["JSON object", "model", "[]", badRequest("The body must be a JSON object.")],
  ["model", "messages", {}, badRequest("`model` is required.", "model")],
  ["model", "a field", { messages, temperature: 9 }, badRequest("`model` is required.", "model")],
  [
    "messages",
    "a field",
    { model: "talk", messages: [], temperature: 9 },
    badRequest("`messages` is required and must be a non-empty array.", "messages")
  ],
  [
    "messages",
    "unknown model",
    { model: "nobody" },
    badRequest("`messages` is required and must be a non-empty array.", "messages")
  ],
  [
    "a field",
    "unknown model",
    { ...hot, model: "nobody" },
    badRequest("`temperature` must be a number from 0 to 2.", "temperature")
  ],
  ["unknown model", "its rules", { ...talk("nobody"), max_tokens: 9_000 }, refusals.noModel("nobody")],
  [
    "another surface",
    "its rules",
    { ...talk("picture"), max_tokens: 9_000 },
    refusals.noModel("picture", "a chat", isPicture)
  ],
  ["a model without credential", "its rules", { ...talk("absent"), web_search: true }, refusals.noModel("absent")]
]

withLayer(served)("the order of a request", (it) => {
  it.effect("checks the block list before path, key and health", function* () {
    yield* block("203.0.113.9")
    const { secret } = yield* openAccount({})
    yield* soon(Effect.map(call("/healthz", { headers: blocked }), (got) => assertRefused(got, refusals.denied)))
    for (const path of ["/nowhere", "/v1/nowhere", "/v1/models", "/readyz", "/metrics", "/v1/openapi.json"])
      assertRefused(yield* call(path, { headers: blocked }), refusals.denied)
    for (const { assertRefused, path, send } of chatApis) {
      assertRefused(yield* call(path, { headers: blocked }), refusals.denied)
      assertRefused(yield* send({ secret }, talk("talk"), { headers: blocked }), refusals.denied)
    }
    assert.strictEqual((yield* call("/healthz")).status, 200)
  })

  it.effect("checks the path, for any method, before the key", function* () {
    const paths = ["/v1", "/nowhere", "/v1/nowhere", "/v1/chat", "/chat/nowhere", "/v1/responses/x"]
    for (const path of paths) {
      for (const method of ["GET", "POST"]) {
        const answer = yield* call(path, { method })
        assertRefused(answer, path === "/v1/chat" ? refusals.meantPath(chatPath) : refusals.noEndpoint)
        assert.isUndefined(rateOf(answer))
      }
    }
  })

  it.effect.each(wrongMethods)("answers $method $path before it checks the key", function* ({ method, path }) {
    const { key, secret } = yield* openAccount({ rpm: 1 })
    for (const headers of [{}, bearer("ggw_nobody"), bearer(secret)]) {
      const answer = yield* call(path, { method, headers })
      // An answer to HEAD has no body to judge.
      if (method === "HEAD") {
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(answer.headers.get("content-type"), "application/json; charset=utf-8")
      } else assertRefusedAt(path, answer, wrongMethodAt(path))
      assert.isUndefined(rateOf(answer), key)
    }
  })

  for (const { assertRefused, path, send } of chatApis) {
    describe(path, () => {
      it.effect("checks the key before it receives the body", function* () {
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`
        for (const key of ["", "Authorization: Bearer ggw_nobody\r\n"]) {
          for (const length of ["Content-Length: 50000", "Content-Length: 99999999999", "Transfer-Encoding: chunked"]) {
            const answer = yield* ask(`${head}${key}${length}\r\n\r\n`)
            assertRefused(answer, key === "" ? refusals.missingKey : refusals.invalidKey)
            assert.isUndefined(rateOf(answer))
          }
        }
      })

      it.effect("checks the key before its rate", function* () {
        const account = yield* openAccount({ rpm: 1, nanoUsd: 0n })
        yield* send(account, "{")
        assertRefused(yield* send(account, "{"), refusals.limited)
        yield* (yield* ApiKeys).revoke(OrganizationScope.all, account.key)
        yield* soon(Effect.map(send(account, "{"), (got) => assertRefused(got, refusals.invalidKey)))
      })

      it.effect("checks the rate before the scope", function* () {
        const account = yield* openAccount({ rpm: 1, scopes: ["images", "videos"] })
        const first = yield* send(account, talk("talk"))
        assertRefused(first, refusals.scope)
        assert.deepStrictEqual(rateOf(first), { limit: 1, remaining: 0 })
        assertRefused(yield* send(account, talk("talk")), refusals.limited)
      })

      it.effect("checks the scope before it receives the body", function* () {
        const { secret } = yield* openAccount({ scopes: ["images"] })
        assertRefused(yield* send({ secret }, "{"), refusals.scope)
        const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\n`
        assertRefused(yield* ask(`${head}Content-Length: 50\r\n\r\n`), refusals.scope)
        assertRefused(yield* ask(`${head}Content-Length: 100001\r\n\r\n`), refusals.scope)
      })

      it.effect("checks the size before the JSON", function* () {
        const account = yield* openAccount({})
        assertRefused(yield* send(account, "{".repeat(100_001)), refusals.tooLarge(100_000))
      })

      // A response's items are read by its tools, after every other field.
      const judged = bodies.filter(
        ([earlier, later]) => path !== "/v1/responses" || earlier !== "messages" || later !== "a field"
      )
      it.effect.each(judged)("checks %s before %s", function* ([, , body, refusal]) {
        // Neither could pay, had it come to that.
        for (const account of [
          yield* openAccount({ nanoUsd: 0n }),
          yield* openAccount({ cap: { amount: 0n, period: "day" } })
        ]) {
          assertRefused(yield* send(account, body), refusal)
        }
      })

      it.effect("checks the model's rules before the cap, and the cap before the balance", function* () {
        const { first } = yield* Upstreams
        const account = yield* openAccount({ nanoUsd: 0n, cap: { amount: 0n, period: "week" } })
        if (path === chatPath)
          assertRefused(
            yield* send(account, { ...talk("strict"), max_tokens: 8_193 }),
            badRequest("`max_tokens` must be at most 8192 for `strict`.", "max_tokens")
          )
        assertRefused(
          yield* send(account, {
            ...talk("strict"),
            max_tokens: 8_192,
            tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
          }),
          badRequest("`tools` is not available for `strict`.", "tools")
        )
        assertRefused(yield* send(account, talk("strict")), refusals.capped("week"))
        assert.lengthOf(first.calls, 0)
      })

      it.effect("checks cap and balance before it calls the provider", function* () {
        const poor = yield* openAccount({ nanoUsd: 0n })
        const capped = yield* openAccount({ cap: { amount: 0n, period: "total" } })
        const rich = yield* openAccount({})
        for (const stream of [false, true]) {
          assertRefused(yield* send(poor, { ...talk(`down${path}`), stream }), refusals.insufficient)
          assertRefused(yield* send(capped, { ...talk(`down${path}`), stream }), refusals.capped("total"))
          assertRefused(
            yield* send(rich, { ...talk(`down${path}`), stream }),
            refusals.allFailed("refusing", "network")
          )
        }
        assert.lengthOf((yield* Upstreams).first.calls, 0)
      })
    })
  }
})
