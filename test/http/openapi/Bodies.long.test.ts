import { Arbitrary, Either, FastCheck as fc, Schema } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { InvalidRequest } from "../../../src/domain/Failure.ts"
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
}

/** JSON has no infinite numbers. */
const toJson = (body: object): object => JSON.parse(JSON.stringify({ ...body, model: "m" }))

const objects = <A extends object, I extends object>(schema: Schema.Schema<A, I>): fc.Arbitrary<object> =>
  Arbitrary.make(Schema.encodedBoundSchema(schema)).map(toJson)

const hi = [{ role: "user", content: "hi" }]

const dialects: ReadonlyArray<Dialect> = [
  {
    name: "ChatCompletionRequest",
    bodies: objects(ChatCompletionRequest),
    fields: Object.keys(ChatCompletionRequest.fields),
    decode: decodeChatBody,
    base: { messages: hi }
  },
  {
    name: "MessagesRequest",
    bodies: objects(MessagesRequest),
    fields: Object.keys(MessagesRequest.fields),
    decode: (body) => decodeMessagesBody(body, {}),
    base: { messages: hi, max_tokens: 1 }
  },
  {
    name: "ResponsesRequest",
    bodies: objects(ResponsesRequest),
    fields: Object.keys(ResponsesRequest.fields),
    decode: decodeResponsesBody,
    base: { input: "hi" }
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
    "must answer a ",
    "`tool_choice`.* (?:`tools`|a function)",
    "^tool_choice.*`tools`",
    "must (?:not be an empty array|hold)",
    "levels deep",
    "^output_(?:config\\.)?format",
    "`text\\.format\\.name`"
  ].join("|")
)

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
})
