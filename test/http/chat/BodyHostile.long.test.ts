import { Either, FastCheck } from "effect"
import { ChatCompletionRequest, decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { base, call, chatBody, hi, imageUrl, png, tool, unchecked } from "./ChatBodies.ts"

const { refusal, taken: decodeBody } = unchecked

const nest = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`)

describe("hostile bodies of chats", () => {
  const deep = 50_000

  it("are refused where a passed-on value nests too deep", () => {
    const parameters = (levels: number) => ({ ...base, tools: [tool("f", { parameters: nest(levels) })] })
    const schema = (levels: number) => ({
      ...base,
      response_format: { type: "json_schema", json_schema: { name: "n", schema: nest(levels) } }
    })
    assert.strictEqual(refusal(parameters(100)), "accepted")
    assert.strictEqual(refusal(schema(100)), "accepted")
    for (const levels of [101, deep]) {
      assert.strictEqual(refusal(parameters(levels))[1], "tools")
      assert.strictEqual(refusal(schema(levels))[1], "response_format")
    }
  })

  it("may nest any other value, which is refused or ignored", () => {
    assert.deepStrictEqual(decodeBody({ ...base, metadata: nest(deep) }), decodeBody(base))
    assert.strictEqual(refusal({ ...base, stop: nest(deep) })[1], "stop")
    assert.strictEqual(refusal(chatBody({ role: "user", content: nest(deep) }))[1], "messages")
    assert.strictEqual(refusal(nest(deep))[1], "model")
  })

  it("cannot reach a prototype", () => {
    const body: unknown = JSON.parse(
      `{"__proto__":{"model":"evil","web_search":true},"constructor":{"prototype":{"stream":true}},"messages":[{"role":"user","content":"hi","__proto__":{"name":"evil"}}],"model":"m"}`
    )
    assert.deepStrictEqual(decodeBody(body), decodeBody(base))
    assert.strictEqual(
      refusal(JSON.parse(`{"__proto__":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`))[1],
      "model"
    )
    assert.notProperty({}, "web_search")
    const odd: unknown = JSON.parse(
      `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"__proto__":{"type":"object"}}}}]}`
    )
    assert.include(JSON.stringify(decodeBody(odd).tools), `"__proto__":{"type":"object"}`)
  })

  it("are read in time that grows with their size only", () => {
    const megabytes = 8_000_000
    const urls = [
      `data:image/png;base64,${"A".repeat(megabytes)}`,
      `data:image/png${";a=b".repeat(megabytes / 4)}`,
      `data:image/${"x".repeat(megabytes)}`,
      `https://${"a".repeat(megabytes)}`,
      `http://x.test/${"%".repeat(megabytes)}`
    ]
    assert.strictEqual(refusal(chatBody({ role: "user", content: [imageUrl(urls[0])] })), "accepted")
    for (const url of urls) refusal(chatBody({ role: "user", content: [imageUrl(url)] }))
    assert.strictEqual(refusal({ ...base, model: "m".repeat(megabytes) }), "accepted")
    assert.strictEqual(refusal({ ...base, tools: [tool("x".repeat(megabytes))] })[1], "tools")
    assert.strictEqual(refusal(chatBody(...Array.from({ length: 50_000 }, () => hi))), "accepted")
    assert.strictEqual(refusal({ ...base, stop: Array.from({ length: 200_000 }, () => "x") })[1], "stop")
  })
})

describe("any body of a chat", () => {
  const known = Object.keys(ChatCompletionRequest.fields)
  const verdict = (body: unknown) => {
    const result = decodeChatBody(body)
    if (Either.isRight(result)) return
    assert.strictEqual(result.left._tag, "InvalidRequest")
    assert.match(result.left.message, /\.$/)
    assert.isTrue(result.left.param === null || [...known, "functions", "function_call"].includes(result.left.param))
  }

  it("never makes the decoder throw where it is JSON", () => {
    FastCheck.assert(FastCheck.property(FastCheck.jsonValue(), verdict), { numRuns: runs(1000) })
  })

  it("never makes the decoder throw where one value is replaced", () => {
    const whole = {
      ...base,
      messages: [
        { role: "user", content: [{ type: "text", text: "hi" }, imageUrl(png)] },
        { role: "assistant", content: null, tool_calls: [call("c")] },
        { role: "tool", content: "1", tool_call_id: "c" }
      ],
      tools: [tool("f", { parameters: { type: "object" } })],
      tool_choice: tool("f"),
      response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
      stream_options: { include_usage: true }
    }
    assert.strictEqual(refusal(whole), "accepted")
    const paths = (value: unknown): ReadonlyArray<ReadonlyArray<string>> =>
      typeof value === "object" && value !== null
        ? Object.entries(value).flatMap(([key, child]) => [[key], ...paths(child).map((path) => [key, ...path])])
        : []
    const put = (value: unknown, [key, ...rest]: ReadonlyArray<string>, what: unknown): unknown => {
      if (key === undefined) return what
      if (Array.isArray(value))
        return value.map((child, index) => (String(index) === key ? put(child, rest, what) : child))
      if (typeof value !== "object" || value === null) return value
      return Object.fromEntries(
        Object.entries(value).map(([k, child]) => [k, k === key ? put(child, rest, what) : child])
      )
    }
    const every = [...paths(whole), ...known.map((name) => [name])]
    FastCheck.assert(
      FastCheck.property(FastCheck.constantFrom(...every), FastCheck.jsonValue(), (path, what) =>
        verdict(put(whole, path, what))
      ),
      { numRuns: runs(2000) }
    )
  })
})
