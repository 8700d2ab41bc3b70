import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../src/domain/Chat.ts"
import type { Feature } from "../../src/domain/Model.ts"
import { assert } from "../harness/It.ts"
import {
  type Answer,
  type Check,
  called,
  comesOut,
  type Harness,
  request,
  turn,
  type Understood,
  weatherTool
} from "./ChatHarness.ts"

const image = "data:image/png;base64,iVBORw0KGgo="

const question = { role: "user", content: "Weather in Bern and Oslo?" } as const
const { name, parameters } = weatherTool.function
const otherTool = { type: "function", function: { name: "get_tides" } } as const
const calls = [called("call_a", name, '{"city":"Bern"}'), called("call_b", name, '{"city":"Oslo"}')]
const calling = { toolCalls: calls.map(({ function: of, id }) => ({ id, ...of })), finish: "tool_calls" } as const
const plain = { content: "Sunny and rain.", finish: "stop" } as const

const toolsContract = ({ has }: Harness, usage: Usage, check: Check) => {
  check("parallel tool calls and their results go over two turns", function* (adapter, host) {
    const first = yield* comesOut(
      adapter,
      host,
      request({ messages: [question], tools: [weatherTool], toolChoice: "required" }),
      { ...calling, usage },
      { content: null, toolCalls: calls, finish: "tool_calls", usage }
    )
    assert.strictEqual(first.toolChoice, "required")
    assert.deepStrictEqual(first.tools, [{ name, parameters }])

    const messages = [
      question,
      { role: "assistant", content: null, tool_calls: calls },
      { role: "tool", content: "sunny", tool_call_id: "call_a" },
      { role: "tool", content: "rain", tool_call_id: "call_b" }
    ] as const
    const second = yield* comesOut(adapter, host, request({ tools: [weatherTool], messages }), plain, plain)
    assert.deepStrictEqual(second.turns, [
      turn("user", question.content),
      turn("assistant", "", {
        calls: [
          { id: "call_a", name, arguments: { city: "Bern" } },
          { id: "call_b", name, arguments: { city: "Oslo" } }
        ]
      }),
      turn("tool", "sunny", { answers: "call_a" }),
      turn("tool", "rain", { answers: "call_b" })
    ])
  })

  const tools = [weatherTool, otherTool]
  check("one of several tools can be forced, and all forbidden", function* (adapter, host) {
    const toolChoice = { type: "function", function: { name } } as const
    const forced = yield* comesOut(adapter, host, request({ tools, toolChoice }), plain, {})
    const isNamed = has.namedChoice !== false
    assert.deepStrictEqual(forced.toolChoice, isNamed ? { name } : "required")
    assert.deepStrictEqual(
      forced.tools.map((tool) => tool.name),
      isNamed ? [name, otherTool.function.name] : [name]
    )
    const forbidden = yield* comesOut(adapter, host, request({ tools, toolChoice: "none" }), plain, {})
    if (forbidden.tools.length > 0) assert.strictEqual(forbidden.toolChoice, "none")
  })

  const isTold = has.singleCall !== false
  check(`of calls that must not be parallel, ${isTold ? "the host is told" : "the first is kept"}`, (adapter, host) =>
    comesOut(adapter, host, request({ tools, parallelToolCalls: false }), calling, {
      toolCalls: isTold ? calls : calls.slice(0, 1)
    }).pipe(Effect.map(({ parallel }) => assert.strictEqual(parallel, isTold ? false : undefined)))
  )
}

/** Features that are one request each: what is asked, what the host answers, and what it must have been sent. */
const sent: ReadonlyArray<readonly [Feature, Partial<ChatRequest>, Answer & Partial<ChatAnswer>, Partial<Understood>]> =
  [
    [
      "reasoning",
      { reasoningEffort: "high" },
      { reasoning: "Let me see.", content: "42", finish: "stop" },
      { reasons: true }
    ],
    ["sampling", { temperature: 0.5, topP: 0.75 }, plain, { temperature: 0.5, topP: 0.75 }],
    ["web_search", { webSearch: true }, plain, { searches: true }]
  ]

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
const formats = [
  [{ type: "json_object" }, undefined],
  [{ type: "json_schema", json_schema: { name: "count", schema, strict: true } }, schema]
] as const

/** What an adapter declares is what reaches the host. */
export const featuresContract = (harness: Harness, usage: Usage, check: Check) => {
  const { features } = harness.has

  check("its features are those of the wire", (adapter, host) =>
    Effect.sync(() => assert.sameMembers([...adapter.features(host.route.options)], [...features]))
  )

  for (const [feature, asked, answer, expected] of sent) {
    if (!features.includes(feature)) continue
    check(`${feature} reaches the host`, (adapter, host) =>
      comesOut(adapter, host, request(asked), answer, answer).pipe(
        Effect.map((understood) => assert.deepInclude(understood, expected))
      )
    )
  }

  if (features.includes("response_format")) {
    check("response_format reaches the host, with a schema and without", function* (adapter, host) {
      for (const [responseFormat, expected] of formats) {
        const answer: Answer = { content: '{"n":3}', finish: "stop" }
        const { json, schema } = yield* comesOut(adapter, host, request({ responseFormat }), answer, {
          content: '{"n":3}'
        })
        assert.deepStrictEqual([json, schema], [true, expected])
      }
    })
  }

  const sees = features.includes("vision")
  check(`messages of every role arrive, in parts${sees ? " and with images" : ""}`, function* (adapter, host) {
    const picture = sees ? [{ type: "image_url", image_url: { url: image, detail: "low" } } as const] : []
    const asked = request({
      messages: [
        { role: "system", content: [{ type: "text", text: "Be brief." }] },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "Hi." },
        {
          role: "user",
          content: [{ type: "text", text: "What is this?" }, ...picture, { type: "text", text: " One word." }]
        }
      ]
    })
    const { system, turns } = yield* comesOut(adapter, host, asked, plain, plain)
    assert.strictEqual(system, "Be brief.")
    assert.deepStrictEqual(turns, [
      turn("user", "Hello"),
      turn("assistant", "Hi."),
      turn("user", "What is this? One word.", { images: sees ? [image] : [] })
    ])
  })

  if (features.includes("tools")) toolsContract(harness, usage, check)
}
