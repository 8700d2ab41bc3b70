import { Effect, Either } from "effect"
import { applyRules } from "../../../src/domain/ChatRules.ts"
import { InvalidRequest } from "../../../src/domain/Failure.ts"
import { decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { request } from "../../contracts/ChatHarness.ts"
import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const familyB = Effect.map(load({ text: builtIn, environment: { OPENAI_API_KEY: "k" } }), ({ models }) =>
  models.flatMap((model) => (model.surface === "chat" && model.family === "B" ? [model] : []))
)

describe("family B of the built-in catalog", () => {
  it.effect("calls functions and searches over the Responses API, from 5.4 on over it alone", function* () {
    const models = yield* familyB
    assert.lengthOf(models, 6)
    for (const { id, routes } of models) {
      const [first, ...others] = routes
      assert.strictEqual(first?.provider.adapter, "openai-responses", id)
      assert.isUndefined(first?.capabilities, id)
      const chat = others.filter(({ provider }) => provider.baseUrl === "https://api.openai.com/v1")
      assert.lengthOf(chat, 1)
      for (const { capabilities } of chat) {
        assert.strictEqual(capabilities?.has("tools"), id.endsWith("5.2"), id)
        assert.isFalse(capabilities?.has("web_search"), id)
      }
    }
  })

  it.effect("takes the efforts that the catalog says of each model, whatever the host would take", function* () {
    for (const model of yield* familyB) {
      const refused = (["low", "medium", "high", "xhigh"] as const).filter((reasoningEffort) =>
        Either.isLeft(applyRules(model, request({ reasoningEffort })))
      )
      assert.deepStrictEqual(refused, model.id.endsWith("5.2") ? ["medium", "xhigh"] : [], model.id)
    }
  })

  it("never gets a result without its call, which does not leave the gateway", () => {
    const messages = [
      { role: "user", content: "hi" },
      { role: "tool", content: "sunny", tool_call_id: "call_a" }
    ]
    const read = decodeChatBody({ model: "m", messages })
    const refusal = Either.isLeft(read) ? read.left : assert.fail("accepted")
    assert.instanceOf(refusal, InvalidRequest)
    assert.strictEqual(refusal.param, "messages")
  })
})
