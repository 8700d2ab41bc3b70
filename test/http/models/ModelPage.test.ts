import { call } from "../../harness/client/HttpCalls.ts"
import { assertThrown, customer } from "../../harness/client/MessagesClient.ts"
import { calling, thrownBy } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gateway, maxOutput } from "../../harness/upstream/Upstreams.ts"

const ids = ["talk", "alone", "shut", "strict", "pair", "moving"]
const served = gateway(Object.fromEntries(ids.map((id) => [id, {}])))

withLayer(served)("the models for Anthropic's clients", (it) => {
  it.effect("are the chat models, in pages", function* () {
    const { anthropic } = yield* customer()
    const listed = yield* calling(async () => {
      const all: Array<string> = []
      for await (const { id, type } of anthropic.models.list({ limit: 4 })) all.push(`${type} ${id}`)
      return all
    })
    assert.deepStrictEqual(
      listed,
      ids.map((id) => `model ${id}`)
    )
    const page = yield* calling(() => anthropic.models.list({ limit: 2, before_id: "strict" }))
    assert.deepStrictEqual(
      [page.data.map(({ id }) => id), page.first_id, page.last_id, page.has_more],
      [["alone", "shut"], "alone", "shut", true]
    )
  })

  it.effect("are answered one by one, and a picture's model is not found", function* () {
    const { anthropic } = yield* customer()
    const info = yield* calling(() => anthropic.models.retrieve("talk"))
    assert.deepInclude(info, {
      type: "model",
      id: "talk",
      display_name: "talk",
      created_at: "2026-01-01T00:00:00Z",
      max_input_tokens: 100_000,
      max_tokens: maxOutput
    })
    const missing = yield* thrownBy(() => anthropic.models.retrieve("picture"))
    const message = "The model `picture` does not exist or is not a chat model."
    const hint = "`picture` is an image model: use /v1/images/generations."
    assertThrown(missing, 404, "not_found_error", message, hint)
  })

  it.effect("are listed as ever for others", function* () {
    const { secret } = yield* customer()
    const { text } = yield* call("/v1/models", { headers: { "x-api-key": secret } })
    assert.strictEqual(JSON.parse(text).object, "list")
  })
})
