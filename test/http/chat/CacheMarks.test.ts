import { assert, describe, it } from "../../harness/It.ts"
import { base, call, chatBody, decodeBody, hi, imageUrl, refusal, tool } from "./ChatBodies.ts"

const hour = { cache_control: { type: "ephemeral", ttl: "1h" } }
const fiveMinutes = { cache_control: { type: "ephemeral", ttl: "5m" } }
const plain = { cache_control: { type: "ephemeral" } }
const text = (text: string, more: object = {}) => ({ type: "text", text, ...more })

describe("the marks of a chat for its provider's cache", () => {
  it("are taken on messages of every role, on parts and on tools", () => {
    const messages = [
      { role: "system", content: "s", ...hour },
      { role: "user", content: [text("a", fiveMinutes), { ...imageUrl("https://x.test/a.png"), ...plain }], ...plain },
      { role: "assistant", content: [text("b", plain)], tool_calls: [call("c")], ...plain },
      { role: "tool", content: [text("d", plain)], tool_call_id: "c", ...hour }
    ]
    const tools = [{ ...tool("f"), ...hour }, tool("g")]
    assert.deepInclude(JSON.parse(JSON.stringify(decodeBody({ model: "m", messages, tools }))), { messages, tools })
  })

  it("are taken without a ttl where it is null, and without what else they say", () => {
    const { messages } = decodeBody(
      chatBody({ ...hi, cache_control: { type: "ephemeral", ttl: null, scope: "all" } }, { ...hi, cache_control: null })
    )
    assert.deepStrictEqual(JSON.parse(JSON.stringify(messages)), [{ ...hi, ...plain }, hi])
  })

  const unmarked = text("a", { cache_control: { type: "forever" } })
  const refused = { type: "refusal", refusal: "no", cache_control: [] }
  const noMark = "must be an object of type ephemeral."

  it.each<[what: string, body: unknown, where: string, message: string]>([
    ["a message", chatBody({ ...hi, cache_control: true }), "messages[0].cache_control", noMark],
    ["a part", chatBody({ role: "user", content: [unmarked] }), "messages[0].content[0].cache_control", noMark],
    [
      "a system's part",
      chatBody({ role: "system", content: [text("a", { cache_control: {} })] }),
      "messages[0].content[0].cache_control",
      noMark
    ],
    [
      "a refusal",
      chatBody(hi, { role: "assistant", content: [refused] }),
      "messages[1].content[0].cache_control",
      noMark
    ],
    [
      "a ttl",
      chatBody({ ...hi, cache_control: { type: "ephemeral", ttl: "1d" } }),
      "messages[0].cache_control.ttl",
      "must be one of 5m, 1h."
    ],
    [
      "a tool",
      { ...base, tools: [tool("f"), { ...tool("g"), cache_control: { ttl: "5m" } }] },
      "tools[1].cache_control",
      noMark
    ]
  ])("are refused on %s where they are none", (_, body, where, message) =>
    assert.deepStrictEqual(refusal(body), ["InvalidRequest", where.replace(/\[.*/, ""), `\`${where}\` ${message}`])
  )
})

describe("the key of a chat for its provider's cache", () => {
  it("is taken with a retention in either spelling", () => {
    const of = (fields: object) => {
      const { promptCacheKey, promptCacheRetention } = decodeBody({ ...base, ...fields })
      return [promptCacheKey, promptCacheRetention]
    }
    assert.deepStrictEqual(of({}), [undefined, undefined])
    assert.deepStrictEqual(of({ prompt_cache_key: "a", prompt_cache_retention: "24h" }), ["a", "24h"])
    assert.deepStrictEqual(of({ prompt_cache_retention: "in-memory" }), [undefined, "in_memory"])
    assert.deepStrictEqual(of({ prompt_cache_retention: "in_memory" }), [undefined, "in_memory"])
  })

  it.each(["", 7, "x".repeat(1025)])("is refused as %j", (prompt_cache_key) =>
    assert.deepStrictEqual(refusal({ ...base, prompt_cache_key }), [
      "InvalidRequest",
      "prompt_cache_key",
      "`prompt_cache_key` must be a non-empty string of at most 1024 characters."
    ])
  )

  it.each(["1h", 24, true])("is refused with a retention of %j", (prompt_cache_retention) =>
    assert.deepStrictEqual(refusal({ ...base, prompt_cache_retention }), [
      "InvalidRequest",
      "prompt_cache_retention",
      "`prompt_cache_retention` must be one of in_memory, 24h."
    ])
  )
})
