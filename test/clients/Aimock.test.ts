import { asJson, calling, contentOf, drained } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { bodiesFor, cost, layer, Mocks, usage, weatherTool } from "../harness/upstream/Aimock.ts"

const gateway = layer({ talk: [{ provider: "first", model: "talk-one" }] })

const call = (id: string, city: string) => ({
  id,
  type: "function" as const,
  function: { name: "weather", arguments: JSON.stringify({ city }) }
})

const tools = [weatherTool]
const ask = (model: string, content: string) => ({ model, messages: [{ role: "user" as const, content }] })
const shown = { stream: true as const, stream_options: { include_usage: true } }

withLayer(gateway)("a chat routed to aimock", (it) => {
  it.effect("is sent without unknown fields and charged by its usage", function* () {
    const { first } = yield* Mocks
    first.on({ model: "talk-one", userMessage: "json" }, { content: "Servus!", reasoning: "Hm.", usage })
    const { openai, spent } = yield* Served.customer()
    const { data, response } = yield* calling(() =>
      openai.chat.completions
        .create({
          model: "talk",
          messages: [
            { role: "developer", content: "Be short." },
            { role: "user", content: "json" }
          ],
          temperature: 0.5,
          top_p: 0.9,
          seed: 7,
          stop: "END",
          max_tokens: 9_000,
          reasoning_effort: "low",
          user: "u-1",
          metadata: { a: "b" },
          store: true,
          service_tier: "auto",
          n: 1
        })
        .withResponse()
    )
    assert.deepStrictEqual(asJson(data.choices), [
      {
        index: 0,
        message: { role: "assistant", content: "Servus!", refusal: null, reasoning_content: "Hm." },
        logprobs: null,
        finish_reason: "stop"
      }
    ])
    assert.strictEqual(data.model, "talk")
    assert.match(data.id, /^chatcmpl-[0-9a-f]{32}$/)
    assert.deepInclude(data.usage, usage)
    assert.deepStrictEqual(bodiesFor(first, "talk-one").at(-1), {
      model: "talk-one",
      messages: [
        { role: "system", content: "Be short." },
        { role: "user", content: "json" }
      ],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ["END"],
      max_tokens: 8_000,
      reasoning_effort: "low"
    })
    assert.strictEqual(yield* spent, cost)
    assert.deepInclude(yield* Served.logged(response.headers.get("x-request-id")), {
      status: 200,
      code: null,
      route: "talk@first",
      promptTokens: 123,
      completionTokens: 45,
      charge: cost
    })
  })

  it.effect("requests a stream's usage and shows it only on request", function* () {
    const { first } = yield* Mocks
    first.on(
      { model: "talk-one", userMessage: "stream" },
      { content: "Grüß Gott 👋 from aimock", reasoning: "Hm.", usage }
    )
    const { openai, spent } = yield* Served.customer()
    const silent = yield* calling(() => openai.chat.completions.create({ ...ask("talk", "stream"), stream: true }))
    const { items: plain } = yield* drained(silent)
    assert.isTrue(plain.every(({ choices, usage: told }) => choices.length === 1 && told === undefined))
    assert.strictEqual(yield* spent, cost)

    const asking = yield* calling(() => openai.chat.completions.create({ ...ask("talk", "stream"), ...shown }))
    const { items } = yield* drained(asking)
    assert.deepStrictEqual(asJson(items[0]?.choices[0]?.delta), { role: "assistant", content: "" })
    assert.strictEqual(contentOf(items), "Grüß Gott 👋 from aimock")
    assert.deepInclude(
      items.map(({ choices }) => asJson(choices[0]?.delta ?? {})),
      { reasoning_content: "Hm." }
    )
    assert.deepInclude(items.at(-1), { choices: [] })
    assert.deepInclude(items.at(-1)?.usage, usage)
    assert.isTrue(items.slice(0, -1).every(({ usage: told }) => told === null))
    assert.strictEqual(new Set(items.map(({ created, id, model }) => `${id} ${created} ${model}`)).size, 1)
    assert.strictEqual(yield* spent, 2n * cost)
    for (const sent of bodiesFor(first, "talk-one").slice(-2)) {
      assert.deepStrictEqual(sent, {
        ...ask("talk-one", "stream"),
        max_tokens: 4_096,
        stream: true,
        stream_options: { include_usage: true }
      })
    }
  })

  const toolTalk = (content: string) => ({ ...ask("talk", content), tools, parallel_tool_calls: true })
  const answered = (content: string) => [
    { role: "user" as const, content },
    { role: "assistant" as const, content: null, tool_calls: [call("call_w", "Wien"), call("call_g", "Graz")] },
    { role: "tool" as const, tool_call_id: "call_w", content: "sunny" },
    { role: "tool" as const, tool_call_id: "call_g", content: [{ type: "text" as const, text: "rainy" }] }
  ]
  const toolCalls = [
    { name: "weather", arguments: '{"city":"Wien"}', id: "call_w" },
    { name: "weather", arguments: '{"city":"Graz"}', id: "call_g" }
  ]

  it.effect("carries parallel tool calls and their results both ways", function* () {
    const { first } = yield* Mocks
    first.on({ model: "talk-one", userMessage: "tools", hasToolResult: false }, { toolCalls, usage })
    first.on({ model: "talk-one", toolCallId: "call_g", userMessage: "tools" }, { content: "Sun, rain.", usage })
    const { openai, spent } = yield* Served.customer()
    const asked = yield* calling(() =>
      openai.chat.completions.create({ ...toolTalk("tools"), tool_choice: "required" })
    )
    assert.strictEqual(asked.choices[0]?.finish_reason, "tool_calls")
    assert.deepStrictEqual(asJson(asked.choices[0]?.message), {
      role: "assistant",
      content: null,
      refusal: null,
      tool_calls: [call("call_w", "Wien"), call("call_g", "Graz")]
    })
    assert.deepStrictEqual(bodiesFor(first, "talk-one").at(-1), {
      ...ask("talk-one", "tools"),
      max_tokens: 4_096,
      tools,
      tool_choice: "required",
      parallel_tool_calls: true
    })

    const told = yield* calling(() =>
      openai.chat.completions.create({ ...toolTalk("tools"), messages: answered("tools") })
    )
    assert.strictEqual(told.choices[0]?.message.content, "Sun, rain.")
    const [user, assistant, wien] = answered("tools")
    assert.deepStrictEqual(bodiesFor(first, "talk-one").at(-1)?.["messages"], [
      user,
      assistant,
      wien,
      { role: "tool", tool_call_id: "call_g", content: "rainy" }
    ])
    assert.strictEqual(yield* spent, 2n * cost)
  })

  it.effect("streams tool calls that the client's helper assembles and answers", function* () {
    const { first } = yield* Mocks
    first.on({ model: "talk-one", userMessage: "running", hasToolResult: false }, { toolCalls, usage })
    first.on({ model: "talk-one", toolCallId: "call_g", userMessage: "running" }, { content: "Sun, rain.", usage })
    const { openai, spent } = yield* Served.customer()
    const asked = yield* calling(() => openai.chat.completions.stream(toolTalk("running")).finalChatCompletion())
    assert.strictEqual(asked.choices[0]?.finish_reason, "tool_calls")
    assert.deepStrictEqual(
      asked.choices[0]?.message.tool_calls?.map((made) => [
        made.id,
        made.type,
        "function" in made && made.function.arguments
      ]),
      [
        ["call_w", "function", '{"city":"Wien"}'],
        ["call_g", "function", '{"city":"Graz"}']
      ]
    )
    const told = yield* calling(() =>
      openai.chat.completions.stream({ ...toolTalk("running"), messages: answered("running") }).finalContent()
    )
    assert.strictEqual(told, "Sun, rain.")
    assert.strictEqual(yield* spent, 2n * cost)
  })
})
