import type { ChatRequest, Message, ToolCall } from "../../../src/domain/Chat.ts"
import {
  options as anthropicOptions,
  rulesOf as anthropicRules
} from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { fitRequest } from "../../../src/providers/chat/Fitting.ts"
import { missingResultText } from "../../../src/providers/chat/ToolCalls.ts"
import type { WireRules } from "../../../src/providers/chat/WireRules.ts"
import { options as chatOptions, rulesOf as chatRules } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { called as calledWith, request, weatherTool } from "../../contracts/ChatHarness.ts"
import { routeTo } from "../../contracts/ChatHosts.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { anthropic } from "../anthropic/Wire.ts"
import { openAiChat } from "../openai-chat/Wire.ts"
import { wireRules } from "./Wires.ts"

const system = (content: string): Message => ({ role: "system", content })
const called = (id: string, name = "f", text = "{}") => calledWith(id, name, text)
const user = (content: string): Message => ({ role: "user", content })
const assistant = (content: string | null): Message => ({ role: "assistant", content })
const calling = (...tool_calls: ReadonlyArray<ToolCall>): Message => ({ role: "assistant", content: null, tool_calls })
const result = (id: string, content = "r"): Message => ({ role: "tool", content, tool_call_id: id })
const part = (text: string) => ({ type: "text", text }) as const
const marked = (text: string) => ({ ...part(text), cache_control: { type: "ephemeral" } }) as const

const rulesFor = (wire: (typeof wireRules)[number][0]): WireRules => {
  const [, rules] = wireRules.find(([name]) => name === wire) ?? wireRules[0]
  return rules
}
const chat = (options: object = {}) =>
  chatRules(chatOptions.of(routeTo(openAiChat, "http://host.test", { ...options })))
const claude = (options: object = {}) =>
  anthropicRules(anthropicOptions.of(routeTo(anthropic, "http://host.test", { ...options })))

const fit = (rules: WireRules, ...messages: ReadonlyArray<Message>) =>
  fitRequest(request({ messages }), rules).request.messages

describe.each(wireRules)("a request to %s", (_, rules) => {
  it("is returned as it is where it needs nothing", () => {
    for (const input of [
      request(),
      request({
        messages: [
          system("S"),
          user("a"),
          calling(called("a", "f", '{"x":1.0}')),
          result("a"),
          assistant("b"),
          user("c")
        ],
        tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: {} } } }],
        toolChoice: { type: "function", function: { name: "f" } },
        responseFormat: { type: "json_object" }
      })
    ]) {
      assert.deepStrictEqual(fitRequest(input, rules), { request: input, names: undefined })
      assert.strictEqual(fitRequest(input, rules).request, input)
    }
  })

  it("has names that fit in tools, choice and history, and the names to turn back", () => {
    const [long, invented] = ["a".repeat(140), "default_api:get weather"]
    const input = request({
      messages: [user("?"), calling(called("a", long), called("b", invented)), result("a"), result("b")],
      tools: [{ type: "function", function: { name: long } }, weatherTool],
      toolChoice: { type: "function", function: { name: long } }
    })
    const { names, request: sent } = fitRequest(input, rules)
    const [tool = "", weather] = sent.tools.map((fitted) => fitted.function.name)
    const [, turn] = sent.messages
    const calls = turn?.role === "assistant" ? (turn.tool_calls ?? []) : []
    assert.notStrictEqual(tool, long)
    assert.isAtMost(tool.length, rules.toolName.maxLength)
    assert.strictEqual(weather, "get_weather")
    assert.deepStrictEqual(sent.toolChoice, { type: "function", function: { name: tool } })
    assert.strictEqual(calls[0]?.function.name, tool)
    assert.deepStrictEqual(names?.get(tool), long)
    assert.deepStrictEqual(names?.get(calls[1]?.function.name ?? ""), invented)
    assert.strictEqual(names?.size, 2)
    assert.deepStrictEqual(fitRequest(input, rules).request, sent)
  })

  it("has one result for each call, the last one, where the first one stood", () => {
    const messages = fit(
      rules,
      user("?"),
      calling(called("a")),
      result("a", "1"),
      user("!"),
      result("a", "2"),
      user("?")
    )
    assert.deepStrictEqual(messages, [user("?"), calling(called("a")), result("a", "2"), user("!"), user("?")])
  })

  it("has other ids for calls that repeat one, and each its own results", () => {
    const messages = fit(
      rules,
      user("?"),
      calling(called("a")),
      result("a", "1"),
      result("a", "2"),
      calling(called("a"), called("a")),
      result("a", "3"),
      result("a", "4"),
      result("a", "5"),
      user("!"),
      calling(called("a")),
      user("Never mind."),
      calling(called("a")),
      result("a", "6")
    )
    const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
    const ids = calls.map(({ id }) => id)
    const results = messages.flatMap((message) =>
      message.role === "tool" ? [[ids.indexOf(message.tool_call_id), message.content]] : []
    )
    assert.strictEqual(new Set(ids).size, 5)
    assert.strictEqual(ids[0], "a")
    assert.deepStrictEqual(results, [
      [0, "2"],
      [1, "3"],
      [2, "5"],
      [3, missingResultText],
      [4, "6"]
    ])
  })

  it("has calls and results side by side, whatever stood between them", () => {
    const messages = fit(rules, user("?"), calling(called("a"), called("b")), result("b"), user("!"), result("a"))
    assert.deepStrictEqual(messages.slice(2), [result("b"), result("a"), user("!")])
  })

  it("has a result for each call, which says so where the client has none", () => {
    const both = [user("?"), calling(called("a"), called("b"))]
    const [one, two] = [result("a", missingResultText), result("b", missingResultText)]
    assert.deepStrictEqual(fit(rules, ...both), [...both, one, two])
    assert.deepStrictEqual(fit(rules, ...both, result("b"), user("!")), [...both, result("b"), one, user("!")])
    const long = [user("!"), assistant("Stopped."), user("Go on")]
    assert.deepStrictEqual(fit(rules, ...both, ...long), [...both, one, two, ...long])
  })

  it("has results that came turns later directly behind their calls", () => {
    const both = [user("?"), calling(called("a"), called("b"))]
    const after = [user("!"), assistant("Wait."), user("Go on")]
    const input = [...both, result("b"), ...after.slice(0, 2), result("a"), ...after.slice(2)]
    assert.deepStrictEqual(fit(rules, ...input), [...both, result("b"), result("a"), ...after])
    const split = [user("?"), calling(called("a")), calling(called("b")), result("a"), result("b")]
    const [question, first, second, ...results] = split
    assert.deepStrictEqual<unknown>(fit(rules, ...split), [question, first, results[0], second, results[1]])
  })

  it("has no blank turns of the assistant, and no blank text beside calls", () => {
    const blank: ReadonlyArray<Message> = [
      assistant(""),
      assistant(" \n"),
      assistant(null),
      { role: "assistant", content: [] },
      { role: "assistant", content: [part(""), part("  ")] },
      { role: "assistant", content: null, reasoning_content: "thought" }
    ]
    assert.deepStrictEqual(fit(rules, user("a"), ...blank, user("b")), [user("a"), user("b")])
    const beside = fit(rules, user("a"), { ...calling(called("a")), content: "" }, result("a"))
    assert.deepStrictEqual(beside, [user("a"), calling(called("a")), result("a")])
    assert.deepStrictEqual(fit(rules, assistant("")), [user(".")])
  })
})

describe("arguments of earlier calls", () => {
  const texts = ['{"value": ', "[]", '"Oslo"', "12", "nonsense"]
  const sent = (rules: WireRules, text: string) => {
    const [, turn] = fit(rules, user("?"), calling(called("a", "f", text)), result("a"))
    return turn?.role === "assistant" ? turn.tool_calls?.[0]?.function.arguments : undefined
  }

  it.each(["openai-chat", "openai-responses"] as const)("are a JSON text of an object on %s", (wire) => {
    for (const text of texts) assert.strictEqual(sent(rulesFor(wire), text), JSON.stringify({ arguments: text }))
    for (const text of ["", " ", "null", " null\n"]) assert.strictEqual(sent(rulesFor(wire), text), "{}")
    for (const text of ['{"id":12345678901234567891}', ' { "2": 1.0, "1": 1e2 } ']) {
      assert.strictEqual(sent(rulesFor(wire), text), text)
    }
  })
})

describe("ids of calls", () => {
  it("of nine letters and digits are those of a host that takes no others", () => {
    const ids = ["call_1", "toolu_01AbC", "abcdefghi", "functions.get:0"]
    const messages = fit(
      chat({ call_id_length: 9 }),
      user("?"),
      calling(...ids.map((id) => called(id))),
      ...ids.map((id) => result(id))
    )
    const [, turn, ...results] = messages
    const calls = turn?.role === "assistant" ? (turn.tool_calls ?? []).map(({ id }) => id) : []
    for (const id of calls) assert.match(id, /^[a-zA-Z0-9]{9}$/)
    assert.strictEqual(calls[2], "abcdefghi")
    assert.strictEqual(new Set(calls).size, 4)
    assert.deepStrictEqual(
      results.map((message) => message.role === "tool" && message.tool_call_id),
      calls
    )
  })

  it("of another vendor fit each wire", () => {
    for (const [, rules] of wireRules) {
      const id = "x".repeat(300)
      const [, turn, answer] = fit(rules, user("?"), calling(called(id)), result(id))
      const own = turn?.role === "assistant" ? turn.tool_calls?.[0]?.id : undefined
      assert.match(own ?? "", /^call_[a-zA-Z0-9]{24}$/)
      assert.strictEqual(answer?.role === "tool" && answer.tool_call_id, own)
    }
  })
})

describe("text parts outside of user messages", () => {
  const failed: Message = { role: "tool", content: [part("Error:"), part("no such file")], tool_call_id: "a" }
  const history = [user("?"), calling(called("a"))]

  it("are one text for chat hosts", () => {
    const said: Message = { role: "assistant", content: [part("Half a "), part("sentence.")] }
    const parts: Message = { role: "user", content: [part("a"), part("b")] }
    assert.deepStrictEqual(
      fit(chat(), { role: "system", content: [part("S"), part("T")] }, ...history, failed, said, parts),
      [system("S\n\nT"), ...history, result("a", "Error:\nno such file"), assistant("Half a sentence."), parts]
    )
  })

  it("are one text up to each cache mark that the host is sent", () => {
    const head: Message = { role: "system", content: [part("S"), marked("T")] }
    const joined: Message = { role: "system", content: [marked("S\n\nT")] }
    assert.deepStrictEqual(fit(chat({ cache: "manual" }), head, ...history, failed), [
      joined,
      ...history,
      result("a", "Error:\nno such file")
    ])
    const first: Message = { role: "system", content: [marked("S"), part("T"), part("U")] }
    assert.deepStrictEqual(fit(chat({ cache: "manual" }), first), [
      { role: "system", content: [marked("S"), part("T\n\nU")] }
    ])
    const empty: Message = { role: "tool", content: [part(""), marked("")], tool_call_id: "a" }
    assert.deepStrictEqual(fit(chat({ cache: "manual" }), ...history, empty), [...history, result("a", "")])
    assert.deepStrictEqual(fit(chat(), head, user("?")), [system("S\n\nT"), user("?")])
    const unpriced = request({ messages: [head, user("?")], unpricedBreakpoints: "all" })
    assert.deepStrictEqual(fitRequest(unpriced, chat({ cache: "manual" })).request.messages, [
      system("S\n\nT"),
      user("?")
    ])
  })

  it("stay parts for a host that takes them, and on other wires", () => {
    const messages = [...history, failed]
    assert.deepStrictEqual(fit(chat({ content: "parts" }), ...messages), messages)
    assert.deepStrictEqual(fit(claude(), ...messages), messages)
  })
})

describe("system messages", () => {
  const messages = [system("S"), system("T"), user("a"), assistant("b"), system("Late."), user("c")]

  it("at the beginning are one for chat hosts", () => {
    assert.deepStrictEqual(fit(chat(), ...messages), [system("S\n\nT"), ...messages.slice(2)])
    assert.deepStrictEqual(fit(chat({ system: "anywhere" }), ...messages), messages)
    assert.deepStrictEqual(fit(claude(), ...messages), messages)
  })

  it("further down are the user's where the host takes one at the beginning only", () => {
    const first = fit(chat({ system: "first" }), ...messages)
    assert.deepStrictEqual(first, [system("S\n\nT"), user("a"), assistant("b"), user("Late."), user("c")])
    const between = fit(chat({ system: "first" }), user("?"), calling(called("a")), system("Late."), result("a"))
    assert.deepStrictEqual(between, [user("?"), calling(called("a")), result("a"), user("Late.")])
  })

  it("keep their cache marks and names", () => {
    const head: Message = { role: "system", content: "S", cache_control: { type: "ephemeral" } }
    const tail: Message = { role: "system", content: [part("T"), marked("U")] }
    const joined = { role: "system", content: [marked("S"), marked("T\n\nU")] }
    assert.deepStrictEqual<unknown>(fit(chat({ cache: "manual" }), head, tail, user("?")), [joined, user("?")])
    const named: ReadonlyArray<Message> = [{ role: "system", content: "S", name: "boss" }, system("T"), user("?")]
    assert.deepStrictEqual(fit(chat(), ...named), named)
  })
})

describe("the ends of a conversation", () => {
  it.each(["anthropic", "gemini"] as const)("open with the user on %s", (wire) => {
    const rules = rulesFor(wire)
    const history = [calling(called("a")), result("a"), user("?")]
    assert.deepStrictEqual(fit(rules, ...history), [user("."), ...history])
    assert.deepStrictEqual(fit(rules, system("S"), assistant("Hello!"), user("Hi")), [
      system("S"),
      user("."),
      assistant("Hello!"),
      user("Hi")
    ])
    assert.deepStrictEqual(fit(rules, system("S")), [system("S")])
  })

  it.each([
    ["claude without prefill", claude({ prefill: false })],
    ["gemini", rulesFor("gemini")],
    ["a chat host without prefill", chat({ prefill: false })]
  ])("close with the user for %s", (_, rules) => {
    assert.deepStrictEqual(fit(rules, user("a"), assistant("b")), [user("a"), assistant("b"), user("Continue.")])
    assert.deepStrictEqual(fit(rules, user("a"), assistant("b"), assistant(" ")), [
      user("a"),
      assistant("b"),
      user("Continue.")
    ])
    assert.deepStrictEqual(fit(rules, user("a"), assistant("")), [user("a")])
    assert.deepStrictEqual(fit(rules, user("a"), assistant("b"), system("Late.")), [
      user("a"),
      assistant("b"),
      system("Late."),
      user("Continue.")
    ])
    const open = [user("a"), calling(called("a"))]
    assert.deepStrictEqual(fit(rules, ...open), [...open, result("a", missingResultText)])
  })

  it("are the client's for models that go on with the assistant's words", () => {
    const begun = [user("a"), assistant("The color is \n")]
    assert.deepStrictEqual(fit(chat(), ...begun), begun)
    assert.deepStrictEqual(fit(claude(), ...begun), [user("a"), assistant("The color is")])
    assert.deepStrictEqual(fit(claude(), ...begun, system("Late.")), [
      user("a"),
      assistant("The color is"),
      system("Late.")
    ])
    const parts: Message = { role: "assistant", content: [part("The color"), part(" is \n"), part(" ")] }
    assert.deepStrictEqual(fit(claude(), user("a"), parts), [
      user("a"),
      { role: "assistant", content: [part("The color"), part(" is")] }
    ])
  })

  it("have the smallest text for a blank user on gemini", () => {
    const [turn] = fit(rulesFor("gemini"), user(""))
    assert.deepStrictEqual(turn, user("."))
  })

  it("have the smallest text for a blank user on anthropic", () => {
    assert.deepStrictEqual(fit(claude(), user(" \n")), [user(".")])
    assert.deepStrictEqual(fit(claude(), user("a"), assistant("b"), user("")), [user("a"), assistant("b"), user(".")])
    assert.deepStrictEqual(fit(claude(), user("a"), user(""), user("b")), [user("a"), user("b")])
    assert.deepStrictEqual(fit(claude(), user(""), user("b")), [user("b")])
    assert.deepStrictEqual(fit(claude(), calling(called("a")), user(" "), result("a")).slice(1), [
      calling(called("a")),
      result("a")
    ])
    assert.deepStrictEqual(fit(claude(), system("S"), user(""), user(" ")), [system("S"), user(".")])
    assert.deepStrictEqual(fit(chat(), user("")), [user("")])
  })
})

/** Normalizes texts like a prompt cache: breakpoints and single-item lists make no difference. */
const texts = (messages: ReadonlyArray<Message>) =>
  messages.map(({ content, ...message }) => ({
    ...message,
    content:
      content === null || typeof content === "string"
        ? content
        : content.map((of) => ("text" in of ? of.text : of.image_url.url)).join("|")
  }))

describe("the next request of a conversation", () => {
  const ends = [user(""), user("a")]
  const turns: ReadonlyArray<ReadonlyArray<Message>> = [
    [system("S"), system("T"), user(" ")],
    [assistant("b"), user("")],
    [calling(called("x".repeat(200), "get weather"), called("a")), result("x".repeat(200)), result("a")],
    [assistant(""), user("\n")],
    [calling(called("a"), called("a")), result("a", "1"), result("a", "2"), user("")],
    [assistant("c"), system("Late."), ...ends]
  ]

  it.each([
    ...wireRules,
    ["a chat host of nine characters", chat({ call_id_length: 9 })],
    ["a chat host with one system message", chat({ system: "first" })]
  ] as const)("begins with all of the last one for %s", (_, rules) => {
    let before: ReadonlyArray<Message> = []
    for (const at of turns.keys()) {
      const now = fit(rules, ...turns.slice(0, at + 1).flat())
      assert.deepStrictEqual(now.slice(0, before.length), before)
      before = now
    }
    assert.isAbove(before.length, turns.length)
  })

  it("has the same texts where the client's mark has moved on", () => {
    const parted = (last: "part" | "marked"): Message => ({
      role: "tool",
      content: [part("Error:"), last === "marked" ? marked("none") : part("none")],
      tool_call_id: "a"
    })
    const history = [user("?"), calling(called("a"))]
    const host = chat({ cache: "manual" })
    const before = fit(host, ...history, parted("marked"))
    const now = fit(host, ...history, parted("part"), assistant("b"), user("c"))
    assert.deepStrictEqual(texts(now).slice(0, before.length), texts(before))
  })
})

describe("hostile histories", () => {
  const many = Array.from({ length: 5_000 })

  it("may repeat one id in every call", () => {
    const ids = fit(chat(), calling(...many.map(() => called("a"))), ...many.map((_, at) => result("a", `${at}`)))
    const [turn, ...results] = ids
    const calls = turn?.role === "assistant" ? (turn.tool_calls ?? []).map(({ id }) => id) : []
    assert.strictEqual(new Set(calls).size, many.length)
    assert.deepStrictEqual(
      results.map((of) => of.role === "tool" && [of.tool_call_id, of.content]),
      calls.map((id, at) => [id, `${at}`])
    )
  })

  it("may open with any number of system messages", () => {
    const all = many.map((_, at) => system(`${at}`))
    assert.deepStrictEqual(fit(chat(), ...all, user("?")), [system([...many.keys()].join("\n\n")), user("?")])
  })
})

describe("options of a route", () => {
  it("have the smallest text for a blank user", () => {
    assert.deepStrictEqual(fit(chat({ blank_user: false }), user(" ")), [user(".")])
  })

  it("shorten the names of tools", () => {
    const tools: ChatRequest["tools"] = [{ type: "function", function: { name: "a".repeat(65) } }]
    assert.isUndefined(fitRequest(request({ tools }), claude()).names)
    assert.strictEqual(fitRequest(request({ tools }), claude({ tool_name_length: 64 })).names?.size, 1)
  })
})
