import { Effect, Schema } from "effect"
import { NotFoundError, PermissionDeniedError } from "openai"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, bearer, call, type Refusal, refusals } from "../../harness/client/HttpCalls.ts"
import { asJson, calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway } from "../../harness/upstream/Upstreams.ts"
import { validate } from "../openapi/Published.ts"

const id = "vendor/name.v1:free"
const List = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(
      Schema.Struct({ id: Schema.String }).pipe(
        Schema.extend(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
      )
    )
  })
)

const unknown = (model: string, hint?: string): Refusal => ({
  status: 404,
  type: "not_found_error",
  code: "model_not_found",
  message: `The model \`${model}\` does not exist.`,
  param: "model",
  hint
})

const idsOf = (headers: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { text } = yield* call("/v1/models", { headers })
    return (yield* Schema.decodeUnknown(List)(text)).data.map((model) => model.id)
  })

withLayer(gateway({ talk: {}, [id]: {} }))("a key that is limited to models", (it) => {
  it.effect("is shown those that it may use, in either shape, and is refused the others", function* () {
    const all = [yield* openAccount({}), yield* openAccount({ models: ["*"] })]
    for (const { secret } of all) assert.deepStrictEqual(yield* idsOf(bearer(secret)), ["talk", id, "picture"])
    const headers = bearer((yield* openAccount({ models: ["vendor/*", "pic*", "none"] })).secret)
    const anthropic = { ...headers, "anthropic-version": "2023-06-01" }
    assert.deepStrictEqual(yield* idsOf(headers), [id, "picture"])
    assert.deepStrictEqual(yield* idsOf(anthropic), [id])
    assert.deepStrictEqual(yield* idsOf(bearer((yield* openAccount({ models: ["none"] })).secret)), [])
    assert.strictEqual((yield* call(`/v1/models/${id}`, { headers })).status, 200)
    assert.strictEqual((yield* call(`/v1/models/${id}`, { headers: anthropic })).status, 200)
    assertRefused(yield* call("/v1/models/talk", { headers }), refusals.notAllowed("talk"))
    assertRefused(yield* call("/v1/models/other", { headers }), unknown("other"))
    const told = yield* call("/v1/models/talk", { headers: anthropic })
    assert.deepInclude(JSON.parse(told.text).error, { type: "permission_error" })
    assert.strictEqual(told.status, 403)
    assert.strictEqual((yield* call("/v1/models/picture", { headers: anthropic })).status, 404)
  })

  it.effect("is told why by the official client", function* () {
    const { openai } = yield* Served.customer({ models: ["talk"] })
    const error = yield* thrownBy(() => openai.models.retrieve(id))
    assert.instanceOf(error, PermissionDeniedError)
    assert.strictEqual(error.code, "model_not_allowed")
  })
})

withLayer(gateway({ talk: {}, [id]: {} }))("a model asked for by its id", (it) => {
  it.effect("is the object of the list, whether the slashes of its id are escaped or not", function* () {
    const { secret } = yield* openAccount({ scopes: ["images"] })
    const headers = bearer(secret)
    const { data } = yield* Schema.decodeUnknown(List)((yield* call("/v1/models", { headers })).text)
    const listed = data.find((model) => model.id === id)
    assert.isDefined(listed)
    for (const path of [
      id,
      encodeURIComponent(id),
      encodeURIComponent(encodeURI(id)).replaceAll("%25", "%"),
      `${id}/`,
      `${id}?x=1`
    ]) {
      const { status, text } = yield* call(`/v1/models/${path}`, { headers })
      assert.strictEqual(status, 200, path)
      assert.deepStrictEqual(JSON.parse(text), listed)
      assert.isTrue(validate("/components/schemas/Model", JSON.parse(text)))
    }
  })

  it.effect("is found by the official client, which gets a 404 when there is none", function* () {
    const { openai } = yield* Served.customer()
    const found = yield* calling(() => openai.models.retrieve(id))
    assert.deepInclude(asJson(found), { id, object: "model", surface: "chat" })
    const error = yield* thrownBy(() => openai.models.retrieve("vendor/other"))
    assert.instanceOf(error, NotFoundError)
    assert.strictEqual(error.code, "model_not_found")
  })

  it.effect("is refused as unknown where the catalog does not have it, and needs a key", function* () {
    const { secret } = yield* openAccount({})
    const headers = bearer(secret)
    for (const other of ["nope", "vendor", "talk/x", "vendor/name.v1:free/more"]) {
      assertRefused(yield* call(`/v1/models/${other}`, { headers }), unknown(other))
    }
    assertRefused(yield* call("/v1/models/Talk", { headers }), unknown("Talk", "Did you mean `talk`?"))
    const free = unknown("other/name.v1:fred", `Did you mean \`${id}\`?`)
    assertRefused(yield* call("/v1/models/other/name.v1:fred", { headers }), free)
    assertRefused(yield* call(`/v1/models/${"x".repeat(5000)}`, { headers }), unknown(`${"x".repeat(100)}…`))
    assertRefused(yield* call(`/v1/models/${id}`), refusals.missingKey)
    assertRefused(
      yield* call("/v1/models/talk", { method: "DELETE", headers }),
      refusals.wrongMethod("/v1/models/{id}", "GET")
    )
    // The document's path has one segment for an id.
    assertRefused(yield* call(`/v1/models/${id}`, { method: "DELETE", headers }), refusals.noEndpoint)
  })
})
