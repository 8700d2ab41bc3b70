import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { chatApis, chatCompletions } from "../../harness/client/ChatApis.ts"
import { assertRefused, badRequest, post, rateOf, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import { logged } from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { answers, gateway, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const served = gateway({
  talk: {},
  "claude-big": {},
  strict: { family: "C", capabilities: [] }
})

const messages = chatApis.find(({ path }) => path === "/v1/messages")
const countTokens = post("/v1/messages/count_tokens")

withLayer(served)("a key that is limited to models", (it) => {
  for (const { assertRefused, path, send } of chatApis) {
    describe(path, () => {
      it.effect("may use those that its list matches, and is refused every other", function* () {
        const { first } = yield* Upstreams
        const account = yield* openAccount({ models: ["claude-*", "strict"] })
        for (const stream of [false, true]) {
          yield* first.script(stream ? streams("fine") : answers())
          const answer = yield* send(account, { ...talk("claude-big"), stream })
          assert.strictEqual(answer.status, 200, answer.text)
          const { length } = first.calls
          const refused = yield* send(account, { ...talk("talk"), stream })
          assertRefused(refused, refusals.notAllowed("talk"))
          assert.isDefined(rateOf(refused))
          assert.lengthOf(first.calls, length)
          const row = yield* logged(refused.headers.get("x-request-id"))
          assert.deepInclude(row, { status: 403, code: "model_not_allowed", model: "talk" })
        }
      })

      it.effect("is told so after the model's 404, and before all that the model's rules say", function* () {
        const account = yield* openAccount({ models: ["claude-*"], nanoUsd: 0n })
        assertRefused(yield* send(account, talk("nobody")), refusals.noModel("nobody"))
        assertRefused(yield* send(account, talk("picture")), refusals.noModel("picture"))
        const tools = [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
        assertRefused(yield* send(account, { ...talk("strict"), tools }), refusals.notAllowed("strict"))
        assertRefused(yield* send(account, talk("strict")), refusals.notAllowed("strict"))
        assertRefused(yield* send(account, talk("claude-big")), refusals.insufficient)
        assertRefused(yield* send(account, "{"), badRequest("The body is not valid JSON."))
        const scoped = yield* openAccount({ models: ["claude-*"], scopes: ["images"] })
        assertRefused(yield* send(scoped, talk("talk")), refusals.scope)
      })
    })
  }

  it.effect("has tokens counted for the same models alone", function* () {
    const account = yield* openAccount({ models: ["claude-*"] })
    const counted = yield* countTokens(account, talk("claude-big"))
    assert.strictEqual(counted.status, 200, counted.text)
    messages?.assertRefused(yield* countTokens(account, talk("talk")), refusals.notAllowed("talk"))
    messages?.assertRefused(yield* countTokens(account, talk("nobody")), refusals.noModel("nobody"))
  })

  it.effect("draws with the same models alone", function* () {
    const draw = post("/v1/images/generations")
    const body = { model: "picture", prompt: "a tree", response_format: "b64_json" }
    assertRefused(yield* draw(yield* openAccount({ models: ["talk"] }), body), refusals.notAllowed("picture"))
    const drawn = yield* draw(yield* openAccount({ models: ["pict*"] }), body)
    assert.strictEqual(drawn.status, 200, drawn.text)
  })

  it.effect("is let in and shut out while it is in use, and nobody else is", function* () {
    const { first } = yield* Upstreams
    const { update } = yield* ApiKeys
    const [changing, other] = [yield* openAccount({}), yield* openAccount({})]
    const assertAnswered = (account: typeof other, status: number) =>
      Effect.gen(function* () {
        if (status === 200) yield* first.script(answers())
        assert.strictEqual((yield* chatCompletions.send(account, talk("talk"))).status, status)
      })
    yield* assertAnswered(changing, 200)
    yield* update(OrganizationScope.all, changing.key, { models: ["claude-*"] })
    yield* soon(
      Effect.gen(function* () {
        assertRefused(yield* chatCompletions.send(changing, talk("strict")), refusals.notAllowed("strict"))
      })
    )
    yield* assertAnswered(changing, 403)
    yield* assertAnswered(other, 200)
    yield* update(OrganizationScope.all, changing.key, { models: null })
    yield* soon(Effect.asVoid(assertAnswered(changing, 200)))
  })
})
