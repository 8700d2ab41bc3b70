import type { ChatRequest } from "../../../src/domain/Chat.ts"
import { fitNativeBreakpoints as markWith } from "../../../src/providers/anthropic/NativeMessages.ts"
import { request } from "../../contracts/ChatHarness.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { PromptCache } from "./PromptCache.ts"

type Body = Readonly<Record<string, unknown>>
const markNative = (body: Body) => markWith(body, { cache: "auto" }, request())

const cache_control = { type: "ephemeral" }
const long = "All of this is worth keeping. ".repeat(100)
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more })
const tool = (more: object = {}) => ({
  name: "run",
  description: "Runs it.",
  input_schema: { type: "object" },
  ...more
})
const user = (content: unknown) => ({ role: "user", content })
const assistant = (content: unknown) => ({ role: "assistant", content })
const call = { type: "tool_use", id: "toolu_1", name: "run", input: {} }
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "done" }

const agent = { model: "claude", max_tokens: 100, system: long, tools: [tool()], messages: [user("Run it.")] }
const turn = [user("Run it."), assistant([{ type: "thinking", thinking: "So.", signature: "s" }, call]), user([result])]

describe("a native request to an anthropic host", () => {
  it("is marked at the end of its system, its last turn and this one", () => {
    assert.deepStrictEqual(markNative({ ...agent, messages: turn, unknown: { kept: true } }), {
      ...agent,
      unknown: { kept: true },
      system: [text(long, { cache_control })],
      messages: [user([text("Run it.", { cache_control })]), turn[1], user([{ ...result, cache_control }])]
    })
  })

  it("is marked at its last tool that is loaded from the start where there is no system", () => {
    const { system: _, ...rest } = agent
    const tools = [tool({ description: long }), tool({ defer_loading: true })]
    assert.deepStrictEqual(markNative({ ...rest, tools }).tools, [{ ...tools[0], cache_control }, tools[1]])
    assert.deepStrictEqual(markNative({ ...rest, system: [], tools }).tools, [{ ...tools[0], cache_control }, tools[1]])
  })

  it("is marked at the last block that can be", () => {
    const content: ReadonlyArray<object> = [
      text("Look."),
      { type: "image", source: {} },
      text(" "),
      { type: "unheard_of" }
    ]
    const [, image] = content
    const marked = markNative({ ...agent, messages: [user(content)] })
    assert.deepStrictEqual(marked.messages, [user(content.with(1, { ...image, cache_control }))])
    assert.isObject(new PromptCache(0).take(marked))
  })

  it.each([
    ["it asks for automatic caching", { ...agent, cache_control }],
    ["a tool is marked", { ...agent, tools: [tool({ cache_control })] }],
    ["the system is marked", { ...agent, system: [text(long, { cache_control })] }],
    ["a block is marked", { ...agent, messages: [user([text("Run it.", { cache_control })])] }],
    [
      "a block of a result is marked",
      { ...agent, messages: [user([{ ...result, content: [text("a", { cache_control })] }])] }
    ],
    ["it is a single question", { ...agent, tools: [] }],
    ["a call is forced", { ...agent, tool_choice: { type: "any" } }],
    ["it is short", { ...agent, system: "Be brief." }],
    ["there is nothing to mark", { model: "claude" }]
  ])("stays as it is where %s", (_, body) => assert.strictEqual(markNative(body), body))

  it("is marked where a mark is null, which is none", () =>
    assert.notStrictEqual(markNative({ ...agent, cache_control: null }), agent))

  it("is not marked without the option, nor where the model has no price for it", () => {
    assert.strictEqual(markWith(agent, { cache: "manual" }, request()), agent)
    assert.strictEqual(markWith(agent, { cache: "auto" }, request({ unpricedBreakpoints: "all" })), agent)
    assert.notStrictEqual(markWith(agent, { cache: "auto" }, request({ unpricedBreakpoints: "hour" })), agent)
  })

  it("loses the marks that the model has no price for, wherever they stand", () => {
    const hour = { cache_control: { type: "ephemeral", ttl: "1h" } }
    const bodyWith = (own: object) => ({
      ...agent,
      ...own,
      tools: [tool({ ...own, input_schema: { properties: hour } })],
      system: [text(long, own)],
      messages: [
        user([{ ...result, content: [text("a", own)], ...own }]),
        user([{ type: "document", source: { type: "content", content: [text("b", own)] } }]),
        assistant([{ ...call, input: hour, cache_control: null }]),
        user([{ type: "web_fetch_tool_result", content: { content: { type: "document", ...own } } }]),
        user([{ type: "tool_addition", tool: { type: "tool_definition", definition: tool(own) } }]),
        user("Go on.")
      ]
    })
    const kept = (unpricedBreakpoints: ChatRequest["unpricedBreakpoints"]): unknown =>
      JSON.parse(JSON.stringify(markWith(bodyWith(hour), { cache: "auto" }, request({ unpricedBreakpoints }))))
    assert.deepStrictEqual(kept("all"), bodyWith({}))
    assert.deepStrictEqual(kept("hour"), bodyWith({ cache_control }))
    assert.deepStrictEqual(kept(undefined), bodyWith(hour))
  })
})
