import { Arbitrary, Either, FastCheck as fc, Schema } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { InvalidRequest } from "../../../src/domain/Failure.ts"
import { unusableReference } from "../../../src/domain/Media.ts"
import { ChatCompletionRequest, decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { decodeMessagesBody, MessagesRequest } from "../../../src/http/messages/MessagesBody.ts"
import { decodeResponsesBody, ResponsesRequest } from "../../../src/http/responses/ResponsesBody.ts"
import { hasAllCases, runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { accepts } from "./Published.ts"

// Conversations are read by hand, so these properties prove that the readers keep to the document.

interface Dialect {
  readonly name: string
  readonly bodies: fc.Arbitrary<object>
  readonly fields: ReadonlyArray<string>
  readonly decode: (body: unknown) => Either.Either<ChatRequest, InvalidRequest>
  readonly base: object
  /** Holds what the dialect has; every value in it may be replaced. */
  readonly whole: object
}

/** JSON has no infinite numbers. */
const toJson = (body: object): object => JSON.parse(JSON.stringify({ ...body, model: "m" }))

const objects = <A extends object, I extends object>(schema: Schema.Schema<A, I>): fc.Arbitrary<object> =>
  Arbitrary.make(Schema.encodedBoundSchema(schema)).map(toJson)

const hi = [{ role: "user", content: "hi" }]
const cache_control = { type: "ephemeral", ttl: "5m" }
const image_url = { url: "https://a.test/a.png", detail: "low" }
const source = { type: "url", url: "https://a.test/a.png" }
const schema = { type: "object" }
const named = { name: "f", description: "d", strict: true }
const shaped = { type: "json_schema", schema }

const dialects: ReadonlyArray<Dialect> = [
  {
    name: "ChatCompletionRequest",
    bodies: objects(ChatCompletionRequest),
    fields: Object.keys(ChatCompletionRequest.fields),
    decode: decodeChatBody,
    base: { messages: hi },
    whole: {
      messages: [
        { role: "system", content: [{ type: "text", text: "s", cache_control }], name: "n" },
        {
          role: "user",
          content: [
            { type: "image_url", image_url },
            { type: "image", source }
          ]
        },
        {
          role: "assistant",
          content: [{ type: "refusal", refusal: "no" }],
          reasoning_content: "r",
          tool_calls: [
            { id: "c", type: "function", function: { name: "f", arguments: "{}" } },
            { id: "d", type: "custom", custom: { name: "p", input: "x" } }
          ]
        },
        { role: "tool", tool_call_id: "c", content: "1" }
      ],
      tools: [
        { type: "function", function: { ...named, parameters: schema }, cache_control },
        { name: "g", input_schema: schema },
        { type: "custom", custom: { name: "p", format: { type: "grammar", syntax: "lark", definition: "x" } } }
      ],
      tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
      response_format: { type: "json_schema", json_schema: { ...named, schema } },
      stream_options: { include_usage: true }
    }
  },
  {
    name: "MessagesRequest",
    bodies: objects(MessagesRequest),
    fields: Object.keys(MessagesRequest.fields),
    decode: (body) => decodeMessagesBody(body, {}),
    base: { messages: hi, max_tokens: 1 },
    whole: {
      system: [{ type: "text", text: "s", cache_control }],
      messages: [
        {
          role: "user",
          content: [
            { type: "image", source },
            { type: "document", title: "t", source: { type: "content", content: [{ type: "text", text: "x" }] } },
            { type: "search_result", source: "s", title: "t", content: [{ type: "text", text: "x" }] }
          ]
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "t", signature: "s" },
            { type: "tool_use", id: "c", name: "f", input: {} }
          ]
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c", is_error: true, content: "x" }] }
      ],
      tools: [
        { ...named, input_schema: schema, cache_control },
        { type: "web_search_20250305", name: "web_search" }
      ],
      tool_choice: { type: "tool", name: "f" },
      thinking: { type: "enabled", budget_tokens: 1000 },
      output_config: { effort: "low", format: shaped }
    }
  },
  {
    name: "ResponsesRequest",
    bodies: objects(ResponsesRequest),
    fields: Object.keys(ResponsesRequest.fields),
    decode: decodeResponsesBody,
    base: { input: "hi" },
    whole: {
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "x" },
            { type: "input_image", image_url }
          ]
        },
        { type: "reasoning", summary: [{ text: "t" }], encrypted_content: "e" },
        { role: "assistant", content: [{ type: "output_text", text: "x" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "x" }] },
        { type: "additional_tools", tools: [{ type: "custom", name: "p" }] }
      ],
      tools: [
        { type: "function", ...named, parameters: schema },
        { type: "namespace", name: "n", tools: [{ type: "function", name: "g" }] },
        { type: "web_search" }
      ],
      tool_choice: { type: "function", name: "f" },
      text: { format: { ...named, ...shaped }, verbosity: "low" },
      reasoning: { effort: "low" },
      metadata: { a: "b" }
    }
  }
]

/** Some of their members are read in more forms than the document has. */
const readByHand: ReadonlySet<string> = new Set([
  "messages",
  "input",
  "system",
  "tools",
  "tool_choice",
  "response_format",
  "text"
])

/** Refusals of bodies that fit: rules across fields, and what the document leaves open. */
const spanning = new RegExp(
  [
    "must match a ",
    "`tool_choice`.* (?:`tools`|a function)",
    "^tool_choice.*`tools`",
    "must (?:not be an empty array|hold|contain)",
    "levels deep",
    "^output_(?:config\\.)?format",
    "`text\\.format\\.name`",
    unusableReference
  ].join("|")
)

type Place = ReadonlyArray<string>

const placesIn = (value: unknown): ReadonlyArray<Place> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, child]) => [[key], ...placesIn(child).map((place) => [key, ...place])])
    : []

const put = (value: unknown, [key, ...rest]: Place, what: unknown): unknown => {
  if (key === undefined) return what
  if (typeof value !== "object" || value === null) return value
  const replaced = Object.entries(value).map(([name, child]) => [name, name === key ? put(child, rest, what) : child])
  return Array.isArray(value) ? replaced.map(([, child]) => child) : Object.fromEntries(replaced)
}

const junk = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(0, 1, 1.5, -3, 1e300, "", "x", "x".repeat(1025), true, [], {}, [1], ["x"], [""], [{}], null),
  fc.constantFrom<unknown>({ type: "x" }, { type: "none" }, Array.from({ length: 17 }, String))
)

describe("the published schema of a conversation", () => {
  it.each(dialects)("$name has only bodies that are accepted, but for rules across fields", (dialect) => {
    let accepted = 0
    const property = fc.property(dialect.bodies, (body) => {
      assert.isTrue(accepts(dialect.name, body), JSON.stringify(body))
      const result = dialect.decode(body)
      if (Either.isRight(result)) accepted++
      else assert.match(result.left.message, spanning)
    })
    fc.assert(property, { numRuns: runs(300) })
    if (hasAllCases) assert.isAbove(accepted, 30)
  })

  it.each(dialects)("$name refuses a field with the reader, which names it", ({ base, decode, fields, name }) => {
    let refused = 0
    const others = fields.filter((field) => field !== "model")
    const property = fc.property(fc.constantFrom(...others), junk, (field, value) => {
      const body = { ...base, model: "m", [field]: value }
      const result = decode(body)
      if (Either.isRight(result)) {
        const mayDiffer = readByHand.has(field) && Object(value) === value
        return assert.isTrue(mayDiffer || accepts(name, body), JSON.stringify(body))
      }
      refused++
      const { message, param } = result.left
      assert.strictEqual(param, field)
      assert.isTrue(!accepts(name, body) || spanning.test(message), `${JSON.stringify(body)}: ${message}`)
    })
    fc.assert(property, { numRuns: runs(2000) })
    if (hasAllCases) assert.isAbove(refused, 600)
  })

  it.each(dialects)(
    "$name accepts no more than the reader, wherever a value is replaced",
    ({ decode, name, whole }) => {
      const body = toJson(whole)
      assert.isTrue(accepts(name, body) && Either.isRight(decode(body)))
      const places = placesIn(whole)
      let refused = 0
      const property = fc.property(fc.constantFrom(...places), junk, (place, value) => {
        const changed = put(body, place, value)
        const result = decode(changed)
        if (Either.isRight(result)) return
        refused++
        const { message, param } = result.left
        const shown = `${place.join(".")} ${JSON.stringify(value)}: ${message}`
        if (spanning.test(message)) return
        assert.isFalse(accepts(name, changed), shown)
        // Some clients send their tools among the input.
        assert.strictEqual(param, place[0] === "input" && place.includes("tools") ? "tools" : place[0], shown)
      })
      fc.assert(property, { numRuns: runs(3000) })
      if (hasAllCases) assert.isAbove(refused, 1000)
    }
  )
})
