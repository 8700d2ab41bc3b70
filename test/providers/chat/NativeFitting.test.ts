import type { NativeRequest } from "../../../src/domain/Chat.ts"
import {
  options as anthropicOptions,
  rulesOf as anthropicRules
} from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { native as anthropicNative } from "../../../src/providers/anthropic/NativeMessages.ts"
import { missingResultText } from "../../../src/providers/chat/ToolCalls.ts"
import { native as responsesNative } from "../../../src/providers/openai-responses/NativeResponses.ts"
import {
  options as responsesOptions,
  rulesOf as responsesRules
} from "../../../src/providers/openai-responses/ResponsesRequest.ts"
import { callTo } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { anthropic } from "../anthropic/Wire.ts"
import { openAiResponses } from "../openai-responses/Wire.ts"

type Body = NativeRequest["body"]

const claude = callTo(anthropic, { decoder: anthropicOptions, rulesOf: anthropicRules }, { thinking: true })
const responses = callTo(
  openAiResponses,
  { decoder: responsesOptions, rulesOf: responsesRules },
  { summary: true, stream: true, encrypted: true }
)

const messagesOf = (messages: ReadonlyArray<unknown>, options = {}): unknown =>
  Object(anthropicNative.encode(claude({}, options), { messages })).messages
const itemsOf = (input: ReadonlyArray<unknown>): unknown =>
  Object(responsesNative.encode(responses({}), { input })).input

const user = (content: unknown) => ({ role: "user", content })
const assistant = (...content: ReadonlyArray<object>) => ({ role: "assistant", content })
const text = (words: string) => ({ type: "text", text: words })
const use = (id: string, input: unknown = {}, name = "f") => ({ type: "tool_use", id, name, input })
const result = (id: string, content: string) => ({ type: "tool_result", tool_use_id: id, content })

const missing = (id: string) => ({ ...result(id, missingResultText), is_error: true })

describe("a client's own body for the Messages API", () => {
  it("has names and inputs of earlier calls that the host takes", () => {
    const value = [use("a", '{"city": "Os', "get weather"), use("b", null), use("c", [1]), use("d", { x: 1 })]
    const [, turn] = Object(messagesOf([user("?"), assistant(...value), user("And?")]))
    assert.deepStrictEqual(
      turn.content.map(({ input }: { readonly input: unknown }) => input),
      [{ arguments: '{"city": "Os' }, {}, { arguments: "[1]" }, { x: 1 }]
    )
    assert.match(turn.content[0].name, /^get_weather_[a-zA-Z0-9]{10}$/)
    assert.strictEqual(turn.content[1].name, "f")
  })

  it("has one result for each call, the last one, and other ids for calls that repeat one", () => {
    const [, first, answers, second, more] = Object(
      messagesOf([
        user("?"),
        assistant(use("a")),
        user([result("a", "1"), result("a", "2")]),
        assistant(use("a"), use("functions.get:0")),
        user([result("functions.get:0", "4"), result("a", "3"), text("And?")])
      ])
    )
    assert.deepStrictEqual(answers.content, [result("a", "2")])
    assert.strictEqual(first.content[0].id, "a")
    const ids = second.content.map(({ id }: { readonly id: string }) => id)
    assert.strictEqual(new Set(["a", ...ids]).size, 3)
    assert.deepStrictEqual(more.content, [result(ids[1], "4"), result(ids[0], "3"), text("And?")])
  })

  it("is closed by the user for models that do not go on with the assistant's words", () => {
    const closing = user("Continue.")
    const off = { prefill: false }
    const begun = [user("a"), { role: "assistant", content: "b" }]
    const thinking = { type: "thinking", thinking: "t", signature: "s" }
    assert.deepStrictEqual(messagesOf(begun), begun)
    assert.deepStrictEqual(messagesOf(begun, off), [...begun, closing])
    const blocks = [user("a"), assistant(thinking, text("b"))]
    assert.deepStrictEqual(messagesOf(blocks, off), [...blocks, closing])
    for (const blank of [{ role: "assistant", content: " " }, assistant(text("")), assistant(thinking)]) {
      assert.deepStrictEqual(messagesOf([user("a"), blank], off), [user("a")])
      assert.deepStrictEqual(messagesOf([...begun, blank], off), [...begun, closing])
    }
    const blanks = Array.from({ length: 20_000 }, () => ({ role: "assistant", content: "" }))
    assert.deepStrictEqual(messagesOf([...begun, ...blanks], off), [...begun, closing])
    assert.deepStrictEqual(messagesOf(blanks, off), [user(".")])
    const paused = [
      user("a"),
      assistant(text("b"), { type: "server_tool_use", id: "s", name: "web_search", input: {} })
    ]
    assert.deepStrictEqual(messagesOf(paused, off), paused)
    const open = [user("a"), assistant(text("b"), use("a"))]
    assert.deepStrictEqual(messagesOf(open, off), [...open, user([missing("a")])])
  })

  it("has a result for each call at the beginning of the next message, which says so where the client has none", () => {
    const called = [user("?"), assistant(use("a"), use("b"))]
    const both = [missing("a"), missing("b")]
    assert.deepStrictEqual(messagesOf(called), [...called, user(both)])
    assert.deepStrictEqual(messagesOf([...called, user("Stop!")]), [...called, user([...both, text("Stop!")])])
    assert.deepStrictEqual(messagesOf([...called, user(" ")]), [...called, user(both)])
    assert.deepStrictEqual(messagesOf([...called, user([result("b", "1"), text("!")])]), [
      ...called,
      user([missing("a"), result("b", "1"), text("!")])
    ])
    const split = [user("?"), assistant(use("a")), assistant(use("b")), user([result("a", "1")])]
    assert.deepStrictEqual(messagesOf(split), [...split.slice(0, 3), user([missing("b"), result("a", "1")])])
    const system = { role: "system", content: "S" }
    assert.deepStrictEqual(messagesOf([...called, system]), [...called, user(both), system])
    const paused = [user("a"), assistant({ type: "server_tool_use", id: "s", name: "web_search", input: {} })]
    assert.deepStrictEqual(messagesOf(paused), paused)
  })

  it("has results that came later in the message behind their calls", () => {
    const called = [user("?"), assistant(use("a"))]
    const late = [user("Hurry"), assistant(text("Wait.")), user([result("a", "1"), text("There.")])]
    assert.deepStrictEqual(messagesOf([...called, ...late]), [
      ...called,
      user([result("a", "1"), text("Hurry")]),
      late[1],
      user([text("There.")])
    ])
    const twice = [...called, user("Hurry"), user([result("a", "1")]), user([result("a", "2")])]
    assert.deepStrictEqual(messagesOf(twice), [...called, user([result("a", "2"), text("Hurry")])])
  })

  it("has the first of two tools of one name", () => {
    const tools = ["1", "2"].map((description) => ({ name: "f", description, input_schema: { type: "object" } }))
    const { tools: sent } = Object(anthropicNative.encode(claude({}), { messages: [], tools }))
    assert.deepStrictEqual(sent, tools.slice(0, 1))
  })

  it("is translated where the host refuses the name of a tool", () => {
    const accepts = (name: string, options = {}) => {
      const call = claude({}, options)
      const body: Body = {
        messages: [],
        tools: [
          { name, input_schema: {} },
          { type: "bash_20250124", name: "bash" }
        ]
      }
      return anthropicNative.accepts(body, call.route, call.options)
    }
    const long = "a".repeat(65)
    assert.deepStrictEqual(
      [accepts(long), accepts(long, { tool_name_length: 64 }), accepts("get weather")],
      [true, false, false]
    )
  })
})

describe("a client's own body for the Responses API", () => {
  const call = (call_id: string, more: object = {}) => {
    return { type: "function_call", call_id, name: "f", arguments: "{}", ...more }
  }
  const output = (call_id: string, words: string) => ({ type: "function_call_output", call_id, output: words })
  const question = { role: "user", content: "?" }

  it("has names and arguments of earlier calls that the host takes", () => {
    const value = ['{"city": "Os', "", "null", "[]", '{ "id": 12345678901234567891 }']
    const items = Object(
      itemsOf([question, ...value.map((text, at) => call(`c${at}`, { arguments: text, name: "default_api:f" }))])
    )
    const calls = items.slice(1, 6)
    assert.deepStrictEqual(
      calls.map((item: { readonly arguments: string }) => item.arguments),
      [JSON.stringify({ arguments: value[0] }), "{}", "{}", JSON.stringify({ arguments: "[]" }), value[4]]
    )
    for (const { name } of calls) assert.match(name, /^default_api_f_[a-zA-Z0-9]{10}$/)
    const custom = { type: "custom_tool_call", call_id: "c", name: "patch", input: "*** Begin" }
    const done = { type: "custom_tool_call_output", call_id: "c", output: "Done" }
    assert.deepStrictEqual(itemsOf([question, custom, done]), [question, custom, done])
  })

  it("has an output for each call, which says so where the client has none", () => {
    const of = (type: string, call_id: string) => ({ type, call_id })
    const none = { output: missingResultText }
    const rows = [
      [call("a"), output("a", missingResultText)],
      [of("custom_tool_call", "a"), { ...of("custom_tool_call_output", "a"), ...none }],
      [of("local_shell_call", "a"), output("a", missingResultText)],
      [of("apply_patch_call", "a"), { ...of("apply_patch_call_output", "a"), status: "failed", ...none }],
      [
        of("shell_call", "a"),
        {
          ...of("shell_call_output", "a"),
          output: [{ stdout: "", stderr: missingResultText, outcome: { type: "exit", exit_code: 130 } }]
        }
      ]
    ]
    for (const [value, missing] of rows) {
      assert.deepStrictEqual(itemsOf([question, value ?? {}]), [question, value, missing])
    }
    assert.deepStrictEqual(itemsOf([question, call("a"), call("b"), output("b", "1"), question]), [
      question,
      call("a"),
      call("b"),
      output("a", missingResultText),
      output("b", "1"),
      question
    ])
    const hosted = { type: "computer_call", call_id: "c" }
    assert.deepStrictEqual(itemsOf([question, hosted]), [question, hosted])
    assert.deepStrictEqual(itemsOf([call("a"), question, output("a", "1")]), [call("a"), question, output("a", "1")])
  })

  it("has one output for each call, the last one, and other ids for calls that repeat one", () => {
    const items = Object(
      itemsOf([
        question,
        call("a"),
        output("a", "1"),
        output("a", "2"),
        call("a"),
        call("x".repeat(80)),
        output("a", "3")
      ])
    )
    assert.deepStrictEqual(items.slice(0, 3), [question, call("a"), output("a", "2")])
    const [, , , second, third, answer, ...rest] = items
    assert.strictEqual(new Set(["a", second.call_id, third.call_id]).size, 3)
    assert.deepStrictEqual([answer, rest], [output(third.call_id, missingResultText), [output(second.call_id, "3")]])
  })

  it("has roots of schemas that the host takes, wherever tools stand", () => {
    const anyOf = [{ required: ["a"] }, { required: ["b"] }]
    const tool = { type: "function", name: "f", parameters: { type: "object", properties: {}, anyOf }, strict: true }
    const fitted = {
      type: "function",
      name: "f",
      description: `The arguments must also match this JSON Schema: ${JSON.stringify({ anyOf })}`,
      parameters: { type: "object", properties: {} },
      strict: false
    }
    const space = (...tools: ReadonlyArray<object>) => ({ type: "namespace", name: "n", tools })
    const added = (...tools: ReadonlyArray<object>) => ({ type: "additional_tools", role: "developer", tools })
    const body = {
      input: [added(tool), question],
      tools: [tool, space(tool)],
      text: { verbosity: "low", format: { type: "json_schema", name: "n", schema: {} } }
    }
    const sent = Object(responsesNative.encode(responses({}), body))
    assert.deepStrictEqual([sent.tools, sent.input[0]], [[fitted, space(fitted)], added(fitted)])
    const format = { type: "json_schema", name: "n", schema: { type: "object", properties: {} } }
    assert.deepStrictEqual(sent.text, { verbosity: "low", format })
  })

  it("is translated where the host refuses the name of a tool, wherever it stands", () => {
    const accepts = (body: Body) => {
      const value = responses({})
      return responsesNative.accepts(body, value.route, value.options)
    }
    const tool = (name: string) => ({ type: "function", name, parameters: {} })
    const [fits, long] = [tool("a".repeat(64)), tool("a".repeat(65))]
    assert.isTrue(
      accepts({ input: [{ type: "additional_tools", tools: [fits] }], tools: [fits, { type: "local_shell" }] })
    )
    assert.isFalse(accepts({ input: "?", tools: [fits, long] }))
    assert.isFalse(accepts({ input: "?", tools: [{ type: "namespace", name: "n", tools: [long] }] }))
    assert.isFalse(accepts({ input: [{ type: "additional_tools", tools: [long] }] }))
    assert.isFalse(accepts({ input: "?", tools: [{ type: "custom", name: "get weather" }] }))
  })
})
