import { LLMock } from "@copilotkit/aimock"
import { Context, Effect, Layer } from "effect"
import { calling } from "../harness/client/OfficialClients.ts"
import { chatCatalog } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { cost, usage } from "../harness/upstream/Aimock.ts"

class Mock extends Context.Tag("test/Mock")<Mock, LLMock>() {}

const mock = Layer.scoped(
  Mock,
  Effect.acquireRelease(
    Effect.promise(() => LLMock.create({ port: 0, chunkSize: 5 })),
    (made) => Effect.promise(() => made.stop())
  )
)

const adapters = ["openai-responses", "openai-chat"] as const
const gateway = Served.layer(
  Effect.map(Mock, ({ url }) => ({
    catalog: chatCatalog(
      Object.fromEntries(
        adapters.map((adapter) => [adapter, { adapter, base_url: `${url}/v1`, credential: "MOCK_KEY" }])
      ),
      Object.fromEntries(adapters.map((adapter) => [adapter, [{ provider: adapter, model: "theirs" }]]))
    ),
    env: { MOCK_KEY: "secret" }
  }))
).pipe(Layer.provideMerge(mock))

const weather = { type: "function" as const, name: "weather", parameters: { type: "object" }, strict: false }
const cases = adapters.flatMap((adapter) => [false, true].map((stream) => ({ adapter, stream })))

withLayer(gateway)("a response routed to aimock", (it) => {
  it.effect.each(cases)("by $adapter says what it says and costs its usage, streamed: $stream", function* (one) {
    const { adapter, stream } = one
    const aimock = yield* Mock
    aimock.on({ userMessage: "talk" }, { content: "Servus, world!", usage })
    aimock.on({ userMessage: "call" }, { toolCalls: [{ name: "weather", arguments: '{"city":"Wien"}' }], usage })
    const { openai, spent } = yield* Served.customer()
    const ask = (input: string) => {
      const body = { model: adapter, input, tools: [weather] }
      return calling(() => (stream ? openai.responses.stream(body).finalResponse() : openai.responses.create(body)))
    }
    const talked = yield* ask("talk")
    assert.deepStrictEqual([talked.output_text, talked.model], ["Servus, world!", adapter])
    assert.match(talked.id, /^resp_[0-9a-f]{32}$/)
    const called = yield* ask("call")
    const [call] = called.output.filter((item) => item.type === "function_call")
    assert.deepInclude(call, { name: "weather", arguments: '{"city":"Wien"}' })
    assert.strictEqual(yield* spent, 2n * cost)
  })
})
