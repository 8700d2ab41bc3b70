import { FastCheck, Schema, Struct } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { UpstreamFailed } from "../../../src/domain/Failure.ts"
import { zero } from "../../../src/domain/Money.ts"
import { completionJson, SseEncoder } from "../../../src/http/chat/ChatCompletionsDialect.ts"
import { ChatCompletion, ChatCompletionChunk } from "../../../src/http/chat/ChatSchema.ts"
import { encodeBrokenStream } from "../../../src/http/errors/ErrorMessages.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { accepts } from "../openapi/Published.ts"
import {
  callingAnswer,
  content,
  encoder,
  name,
  reasoning,
  spokenAnswer,
  stop,
  toolEvents,
  usage,
  wireUsage
} from "./ChatAnswers.ts"

const dataOf = (text: string): ReadonlyArray<string> =>
  text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => event.replace(/^data: /, ""))

const citations = [
  { url: "https://a.example/", title: "A", quote: "q", start: 1, end: 3 },
  { url: "https://b.example/" }
]
const annotations = [
  { type: "url_citation", url_citation: { url: "https://a.example/", title: "A", start_index: 1, end_index: 3 } },
  {
    type: "url_citation",
    url_citation: { url: "https://b.example/", title: "https://b.example/", start_index: 0, end_index: 0 }
  }
]

describe("the JSON of an answer", () => {
  it("has the shape of the convention", () => {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(completionJson(name, spokenAnswer, usage))), {
      id: "chatcmpl-1",
      object: "chat.completion",
      created: 1_700_000_000,
      model: "m-1",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Servus", refusal: null },
          logprobs: null,
          finish_reason: "stop"
        }
      ],
      usage: wireUsage
    })
  })

  it("has null for content beside tool calls and has the reasoning", () => {
    const [choice] = completionJson(name, callingAnswer, usage).choices
    assert.deepStrictEqual(choice?.message, {
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "Which city?",
      tool_calls: callingAnswer.toolCalls
    })
    assert.strictEqual(choice?.finish_reason, "tool_calls")
  })

  it("keeps text beside tool calls, and an empty answer, unchanged", () => {
    const completion = completionJson(name, { ...callingAnswer, content: "Let me look." }, usage)
    assert.strictEqual(completion.choices[0]?.message.content, "Let me look.")
    const empty = completionJson(name, { ...spokenAnswer, content: "" }, usage)
    assert.strictEqual(empty.choices[0]?.message.content, "")
  })

  it("has its sources as annotations, with all that clients demand", () => {
    const message = completionJson(name, { ...spokenAnswer, citations }, usage).choices[0]?.message
    assert.deepStrictEqual<unknown>(message?.annotations, annotations)
    assert.notProperty(
      completionJson(name, { ...spokenAnswer, citations: [] }, usage).choices[0]?.message,
      "annotations"
    )
  })

  it("has the calls of custom tools with their plain input", () => {
    const function_ = { name: "patch", arguments: '{"input":"*** Begin"}' }
    const toolCalls = [{ id: "call_a", type: "function" as const, function: function_, signature: "s" }]
    const answer = { ...callingAnswer, toolCalls }
    const custom = completionJson(name, answer, usage, undefined, new Set(["patch"])).choices[0]?.message.tool_calls
    const expected = [{ id: "call_a~sig~s", type: "custom", custom: { name: "patch", input: "*** Begin" } }]
    assert.deepStrictEqual<unknown>(custom, expected)
    assert.isTrue(accepts("ChatCompletion", completionJson(name, answer, usage, undefined, new Set(["patch"]))))
    const other = completionJson(name, answer, usage, undefined, new Set(["other"])).choices[0]?.message.tool_calls
    assert.propertyVal(other?.[0], "type", "function")
  })

  it("fits the published schema", () => {
    for (const answer of [
      spokenAnswer,
      { ...spokenAnswer, citations },
      callingAnswer,
      { ...spokenAnswer, content: null, finish: "content_filter" as const }
    ]) {
      const wire: unknown = JSON.parse(JSON.stringify(completionJson(name, answer, usage)))
      Schema.decodeUnknownSync(ChatCompletion, { onExcessProperty: "error" })(wire)
    }
  })
})

describe("the encoder of a stream", () => {
  const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m-1","choices":[`
  const chunk = (delta: string, finish = "null") =>
    `${head}{"index":0,"delta":{${delta}},"logprobs":null,"finish_reason":${finish}}]}\n\n`
  const opening = chunk(`"role":"assistant","content":""`)

  it("begins with the role and ends with [DONE]", () => {
    const sse = encoder(false)
    assert.strictEqual(
      sse.encode([content("Ser"), content("vus")]),
      opening + chunk(`"content":"Ser"`) + chunk(`"content":"vus"`)
    )
    assert.strictEqual(sse.encode([reasoning("hm")]), chunk(`"reasoning_content":"hm"`))
    assert.strictEqual(sse.encode([stop]), "")
    assert.strictEqual(sse.encode([{ type: "usage", usage }]), "")
    assert.strictEqual(sse.finish(usage, zero), `${chunk("", '"stop"')}data: [DONE]\n\n`)
  })

  it("begins an answer without output with the role too", () => {
    const silent = encoder(false)
    assert.strictEqual(silent.encode([stop]), "")
    assert.strictEqual(silent.finish(usage, zero), `${opening}${chunk("", '"stop"')}data: [DONE]\n\n`)
    assert.strictEqual(encoder(false).encode([]), "")
    const late = encoder(false)
    assert.strictEqual(late.encode([{ type: "usage", usage }]), "")
    assert.strictEqual(late.encode([content("x")]), opening + chunk(`"content":"x"`))
  })

  it("writes a call's id, type and name once", () => {
    const sse = encoder(false)
    const text = toolEvents.map((event) => sse.encode([event]))
    assert.strictEqual(
      text[0],
      opening +
        chunk(`"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]`)
    )
    assert.strictEqual(text[1], chunk(`"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]`))
    assert.strictEqual(
      text[3],
      chunk(`"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"time","arguments":"{}"}}]`)
    )
    assert.strictEqual(sse.finish(usage, zero), `${chunk("", '"tool_calls"')}data: [DONE]\n\n`)
  })

  const deltasOf = (text: string): ReadonlyArray<unknown> =>
    dataOf(text).flatMap((data) => {
      if (data === "[DONE]") return []
      assert.isTrue(accepts("ChatStreamEvent", JSON.parse(data)), data)
      return JSON.parse(data).choices.map(({ delta }: { readonly delta: unknown }) => delta)
    })

  it("writes all sources in one delta before the finish, also late ones: clients keep one list", () => {
    const sse = encoder(false)
    const text = [citations[0], content("Hi"), stop, citations[1]]
      .map((event) =>
        sse.encode([
          event === undefined || "url" in event ? { type: "citation", citation: event ?? assert.fail() } : event
        ])
      )
      .join("")
    const deltas = deltasOf(text + sse.finish(usage, zero))
    assert.deepStrictEqual<unknown>(deltas.slice(1), [{ content: "Hi" }, { annotations }, {}])
  })

  it("writes a custom tool's call as it was declared, its input in one piece", () => {
    const sse = new SseEncoder(name, false, false, new Set(["patch"]))
    const events: ReadonlyArray<ChatEvent> = [
      { type: "tool_call", index: 0, id: "call_a", name: "patch", arguments: "" },
      { type: "tool_call", index: 1, id: "call_b", name: "f", arguments: "{}" },
      { type: "tool_call", index: 0, arguments: '{"input":"*** ' },
      { type: "tool_call", index: 0, arguments: 'Begin"}' },
      { type: "finish", reason: "tool_calls" }
    ]
    const deltas = deltasOf(events.map((event) => sse.encode([event])).join("") + sse.finish(usage, zero))
    assert.deepStrictEqual<unknown>(deltas.slice(1), [
      { tool_calls: [{ index: 0, id: "call_a", type: "custom", custom: { name: "patch", input: "" } }] },
      { tool_calls: [{ index: 1, id: "call_b", type: "function", function: { name: "f", arguments: "{}" } }] },
      { tool_calls: [{ index: 0, custom: { input: "*** Begin" } }] },
      {}
    ])
  })

  it("writes usage only on request, once, in a chunk of its own", () => {
    const sse = encoder(true)
    const data = dataOf(sse.encode([content("x"), stop, { type: "usage", usage }]) + sse.finish(usage, zero))
    const chunks = data.slice(0, -1).map((json) => JSON.parse(json))
    assert.deepStrictEqual(chunks.map(Struct.get("usage")), [null, null, null, wireUsage])
    assert.deepStrictEqual(
      chunks.map((one) => one.choices.length),
      [1, 1, 1, 0]
    )
    assert.strictEqual(data.at(-1), "[DONE]")
    const silent = encoder(false)
    for (const data of dataOf(silent.encode([content("x"), stop]))) assert.notProperty(JSON.parse(data), "usage")
  })

  it("ends a broken stream with an error and nothing after it", () => {
    assert.strictEqual(
      encoder(true).error(encodeBrokenStream(new UpstreamFailed())),
      `data: {"error":{"message":"The upstream provider returned an error.","type":"api_error","param":null,"code":"upstream_error"}}\n\n`
    )
  })

  const events = FastCheck.array(
    FastCheck.oneof(
      FastCheck.fullUnicodeString().map(content),
      FastCheck.fullUnicodeString().map(reasoning),
      FastCheck.record({
        index: FastCheck.nat(9),
        id: FastCheck.string(),
        name: FastCheck.string(),
        arguments: FastCheck.string()
      }).map((call): ChatEvent => ({ type: "tool_call", ...call })),
      FastCheck.constantFrom(content('\u2028\n\r\n\n "\\ data: [DONE]'), content("\ud800"), stop, {
        type: "usage",
        usage
      } as const)
    )
  )

  it("writes one line of valid JSON for each chunk of any text", () => {
    FastCheck.assert(
      FastCheck.property(events, FastCheck.boolean(), (sent, includeUsage) => {
        const sse = new SseEncoder({ ...name, model: `m"\n` }, includeUsage)
        const text = sse.encode(sent) + sse.finish(usage, zero)
        const lines = text.split("\n")
        assert.isTrue(
          lines.every((line, index) =>
            index % 2 === 0 && index < lines.length - 1 ? line.startsWith("data: ") : line === ""
          )
        )
        const chunks = dataOf(text)
          .slice(0, -1)
          .map((data) => Schema.decodeUnknownSync(ChatCompletionChunk, { onExcessProperty: "error" })(JSON.parse(data)))
        const deltas = chunks.map((one) => one.choices[0]?.delta.content ?? "").join("")
        assert.strictEqual(deltas, sent.map((event) => (event.type === "content" ? event.text : "")).join(""))
      })
    )
  })
})
