import { Effect, Schema } from "effect"
import { assertRefused, bearer, call, chat, post, refusals, talk } from "../../harness/client/HttpCalls.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { answers, gateway, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"

const Named = Schema.parseJson(Schema.Struct({ model: Schema.String }))
const nameIn = ({ text }: { readonly text: string }) => Schema.decodeUnknownSync(Named)(text).model

withLayer(gateway({ "talk-1": {}, "vendor/own-1": {}, "both-1": {}, "other/both-1": {} }))("a vendor's name", (it) => {
  it.effect("before an id is left out, in answers, the log and the charge", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(answers(), streams("fine"))
    const answer = yield* chat(customer, talk("openai/talk-1"))
    assert.strictEqual(answer.status, 200, answer.text)
    assert.strictEqual(nameIn(answer), "talk-1")
    const row = yield* Served.logged(answer.headers.get("x-request-id"))
    assert.deepInclude(row, { model: "talk-1", status: 200 })
    assert.strictEqual(yield* customer.spentInTheEnd, 20_000n)
    const streamed = yield* chat(customer, { ...talk("openrouter/openai/talk-1"), stream: true })
    assert.include(streamed.text, '"model":"talk-1"')
    assert.notInclude(streamed.text, "openrouter")
  })

  it.effect("may stand before an id in every convention, and in the official client", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(answers(), answers(), answers())
    const responses = yield* post("/v1/responses")(customer, { model: "openai/talk-1", input: "hi" })
    assert.deepStrictEqual([responses.status, nameIn(responses)], [200, "talk-1"])
    const message = { ...talk("anthropic/talk-1"), max_tokens: 10 }
    const messages = yield* post("/v1/messages")(customer, message)
    assert.deepStrictEqual([messages.status, nameIn(messages)], [200, "talk-1"])
    const { openai } = customer
    const completion = yield* calling(() =>
      openai.chat.completions.create({ model: "openai/talk-1", messages: [{ role: "user", content: "hi" }] })
    )
    assert.strictEqual(completion.model, "talk-1")
    assert.strictEqual((yield* calling(() => openai.models.retrieve("openai/talk-1"))).id, "talk-1")
  })

  it.effect("is part of an id that has a slash, and is left out of none that another id ends in", function* () {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer()
    yield* first.script(answers(), answers())
    assert.strictEqual(nameIn(yield* chat(customer, talk("vendor/own-1"))), "vendor/own-1")
    assert.strictEqual(nameIn(yield* chat(customer, talk("other/both-1"))), "other/both-1")
    const doubtful = refusals.noModel("third/both-1", "a chat", "Did you mean `both-1` or `other/both-1`?")
    assertRefused(yield* chat(customer, talk("third/both-1")), doubtful)
    const near = refusals.noModel("openai/own-1", "a chat", "Did you mean `vendor/own-1`?")
    assertRefused(yield* chat(customer, talk("openai/own-1")), near)
  })

  it.effect("before an id of another surface names the endpoint of it", function* () {
    const customer = yield* Served.customer()
    const hint = "`picture` is an image model: use /v1/images/generations."
    assertRefused(yield* chat(customer, talk("vendor/picture")), refusals.noModel("vendor/picture", "a chat", hint))
    const asked = { model: "openai/talk-1", prompt: "a cat" }
    const [forImages, forVideos] = yield* Effect.all([
      post("/v1/images/generations")(customer, asked),
      post("/v1/videos")(customer, asked)
    ])
    const chatHint = "`talk-1` is a chat model: use /v1/chat/completions."
    assertRefused(forImages, refusals.noModel("openai/talk-1", "an image", chatHint))
    assertRefused(forVideos, refusals.noModel("openai/talk-1", "a video", chatHint))
    const listed = yield* call("/v1/models/vendor/picture", { headers: bearer(customer.secret) })
    assert.include(listed.text, '"id":"picture"')
  })

  it.effect("is no series of its own in the metrics", function* () {
    const { text } = yield* call("/metrics")
    assert.notInclude(text, 'model="openai/talk-1"')
    assert.include(text, 'model="talk-1"')
  })

  it.effect("that is endless or hostile costs nothing, and is quoted as any name", function* () {
    const customer = yield* Served.customer()
    const long = `${"v/".repeat(500_000)}talk-1`
    assertRefused(yield* chat(customer, talk(long)), refusals.noModel(`${long.slice(0, 100)}…`))
    for (const name of ["\u0000/talk-1", "a b/talk-1", "/talk-1", "talk-1/", "\u202e/talk-1"]) {
      const hint = name === "talk-1/" ? undefined : "Did you mean `talk-1`?"
      assertRefused(yield* chat(customer, talk(name)), refusals.noModel(name, "a chat", hint))
    }
  })
})
