import { spawnSync } from "node:child_process"
import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { Effect, Either, ParseResult, Schema } from "effect"
import { applyRules, unsupportedCombination, unsupportedField } from "../../src/domain/ChatRules.ts"
import * as Failure from "../../src/domain/Failure.ts"
import { chooseVariant } from "../../src/domain/Image.ts"
import { referenceProblems, refuseReference } from "../../src/domain/Media.ts"
import type { Capability, ChatModel, ImageModel, ReferenceImage, VideoModel } from "../../src/domain/Model.ts"
import { NanoUsd, zero } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { chooseSeconds } from "../../src/domain/VideoRules.ts"
import { UsageQuery } from "../../src/http/account/AccountApi.ts"
import { rangeOf } from "../../src/http/account/AccountHandlers.ts"
import { refuseTag } from "../../src/http/admission/RequestContext.ts"
import { readJson } from "../../src/http/body/BodyReader.ts"
import { BodyReceiver } from "../../src/http/body/BodyReceiver.ts"
import { decodeChatBody } from "../../src/http/chat/ChatBody.ts"
import { errorCodes, internalError, renameField, toWire, type WireError } from "../../src/http/errors/ErrorMessages.ts"
import { errorTable } from "../../src/http/errors/ErrorTable.ts"
import { decodeImageBody } from "../../src/http/images/ImageBody.ts"
import { messagesError } from "../../src/http/messages/MessagesAnswer.ts"
import { decodeMessagesBody } from "../../src/http/messages/MessagesBody.ts"
import { decodeResponsesBody } from "../../src/http/responses/ResponsesBody.ts"
import { responsesFieldNames } from "../../src/http/responses/ResponsesObject.ts"
import { decodeVideoBody, VideoContentQuery, VideoListQuery } from "../../src/http/videos/VideoBody.ts"
import { contentOf } from "../../src/http/videos/VideoHandlers.ts"
import { keyFrom } from "../../src/services/idempotency/Idempotency.ts"
import { model, route } from "../fakes/ProviderFake.ts"
import { assert, describe, it } from "../harness/It.ts"
import { readForm } from "../http/body/Forms.ts"
import { imageRoute } from "../providers/sandbox/SandboxMedia.ts"
import { codeSpans, page, root, section, table } from "./Markdown.ts"

const errors = page("docs/errors.md")

/** The failures of whose messages the docs give one. */
const placeholders: ReadonlyArray<Failure.Failure> = [
  new Failure.InvalidRequest({ message: "names the problem", param: null }),
  new Failure.ModelNotFound({ model: "<id>", surface: "chat" }),
  new Failure.ModelNotAllowed({ model: "<id>" }),
  ...(["key", "organization"] as const).map((of) => new Failure.SpendLimitReached({ owner: of, period: "day" })),
  new Failure.AllProvidersFailed({ provider: "<provider>", status: 503 })
]
const ofOperators: ReadonlySet<string> = new Set([
  "NotSignedIn",
  "InsufficientRole",
  "ForeignOrigin",
  "SignInLimited",
  "ChangesLimited",
  "NotFound",
  "Conflict"
])
const codesOfOperators: ReadonlySet<string> = new Set([
  "insufficient_role",
  "not_signed_in",
  "foreign_origin",
  "not_found",
  "conflict"
])
const examples: ReadonlyArray<Failure.Failure> = Object.values(errorTable).map(({ example }) => example("chat"))
const failures = [
  ...placeholders,
  ...examples.filter(({ _tag }) => !placeholders.some((other) => other._tag === _tag) && !ofOperators.has(_tag)),
  new Failure.UpstreamRejected({ param: "messages" })
]

const spent = {
  cap: NanoUsd(10_000_000_000n),
  spent: NanoUsd(10_000_000_000n),
  held: zero,
  resetsAt: new Date("2026-11-25T00:00:00Z")
}

/** One failure for each kind of hint. */
const hinted: ReadonlyArray<Failure.Failure> = [
  ...[undefined, true].map(
    (isMinimum) => new Failure.InsufficientCredits({ needed: NanoUsd(250_000_000n), available: 10_000_000n, isMinimum })
  ),
  new Failure.InsufficientCredits({ needed: undefined, available: 0n }),
  new Failure.SpendLimitReached({ period: "day", spend: spent }),
  new Failure.SpendLimitReached({
    period: "total",
    spend: { ...spent, held: NanoUsd(2_000_000_000n), resetsAt: undefined }
  }),
  new Failure.RateLimited({ limit: 600 }),
  new Failure.OrganizationSuspended(),
  new Failure.ModelNotFound({ model: "x", surface: "chat", suggestions: ["<other id>"] }),
  new Failure.ModelNotFound({ model: "x", surface: "chat", elsewhere: { id: "<id>", surface: "image" } }),
  new Failure.MisspeltPath({ suggestion: "/v1/chat/completions" }),
  new Failure.UnknownMethod({ path: "/v1/chat/completions", methods: ["POST"] }),
  refuseReference("image", referenceProblems.format)
]

const { largeTogether, status, ...problems } = referenceProblems
const allProblems = [...Object.values(problems), largeTogether(64 * 1024 * 1024), status(404)]

const cells = ({ body: { error }, status }: WireError) =>
  [String(status), error.type, String(error.code), error.message].join(" | ")

const distinct = (rows: ReadonlyArray<string>) => [...new Set(rows)].toSorted()

const messages = [{ role: "user", content: "Hi." }]
const picture = { type: "image_url", image_url: { url: "https://example.com/a.png" } }
const tool = { type: "function", function: { name: "f" } }
const asked = (more: object) => ({ model: "<id>", messages, ...more })

const able = (more: Partial<ChatModel> = {}): ChatModel => ({ ...model(route("a")), id: "<id>", ...more })
const plain = able({ capabilities: new Set<Capability>() })

/** What is wrong with a body for a model. */
const complaint = (body: unknown, of: ChatModel = able()) =>
  decodeChatBody(body).pipe(
    Either.flatMap((read) => applyRules(of, read)),
    Either.flip,
    Either.getOrThrowWith(() => new Error(`nothing is wrong with ${JSON.stringify(body)}`))
  )

/** What is wrong with the bytes of a request, as a server meets them. */
const refusedBody = Effect.fnUntraced(function* (
  body: string | Buffer,
  headers: Readonly<Record<string, string>> = {}
) {
  const incoming = new IncomingMessage(new Socket())
  Object.assign(incoming.headers, { "content-type": "application/json", ...headers })
  incoming.push(body)
  incoming.push(null)
  const failure = yield* Effect.flip(
    readJson(new BodyReceiver().body(incoming, OrgId.make("one"), Effect.void), 1024 * 1024)
  )
  return failure._tag === "InvalidRequest" ? failure : yield* Effect.die(failure)
})

const drawn = (more: object) => ({ model: "<id>", prompt: "A cat.", ...more })

const drawer: ImageModel = {
  id: "<id>",
  surface: "image",
  created: 0,
  routes: [],
  variants: [{ resolution: "1K", shape: undefined, price: zero, official: undefined }],
  edit: false,
  maxReferences: 8
}

const [square] = drawer.variants
const shaped: ImageModel = {
  ...drawer,
  routes: [imageRoute()],
  variants: [
    { ...square, shape: { aspectRatio: "1:1", size: "1024x1024" } },
    { ...square, shape: { aspectRatio: "3:2", size: "1536x1024" } }
  ],
  edit: true,
  maxReferences: 1
}

/** What is wrong with the body of an edit, or of a generation, for a model that has 1K and no more. */
const imageComplaint = (
  body: unknown,
  options: { readonly needsReference: boolean } = { needsReference: false },
  of = drawer
) =>
  decodeImageBody(body, options).pipe(
    Either.flatMap((ask) => chooseVariant(of, ask)),
    Either.flip,
    Either.getOrThrowWith(() => new Error(`nothing is wrong with ${JSON.stringify(body)}`))
  )

const formComplaint = () =>
  Either.getOrThrow(Either.flip(readForm("multipart/form-data; boundary=x", Buffer.from("--x\r\n\r\n\r\n--x--"))))

const imageComplaints = [
  imageComplaint(drawn({ prompt: "" })),
  imageComplaint(drawn({ prompt: "x".repeat(1_000_001) })),
  imageComplaint(drawn({}), { needsReference: true }),
  imageComplaint(drawn({ image: 1 })),
  imageComplaint(drawn({ image: Array.from({ length: 9 }, () => "https://example.com/a.png") })),
  imageComplaint(drawn({ image: "!" })),
  imageComplaint(drawn({ image: "https://example.com/a.png" })),
  imageComplaint(drawn({ quality: "hd" })),
  imageComplaint(drawn({ size: "large" })),
  imageComplaint(drawn({ size: "1200x1600" }), undefined, shaped),
  imageComplaint(drawn({ aspect_ratio: "2:3" }), undefined, shaped),
  imageComplaint(drawn({ image: ["https://example.com/a.png", "https://example.com/b.png"] }), undefined, shaped),
  imageComplaint(drawn({ response_format: "png" })),
  imageComplaint(drawn({ n: 2 })),
  imageComplaint(drawn({ mask: "https://example.com/a.png" })),
  imageComplaint(drawn({ images: ["https://example.com/a.png"] })),
  imageComplaint(drawn({ stream: true })),
  formComplaint()
]

const film = (referenceImage: ReferenceImage): VideoModel => ({
  id: "<id>",
  surface: "video",
  created: 0,
  routes: [],
  pricing: { per: "second", price: zero },
  official: undefined,
  seconds: { allowed: [5], default: 5 },
  referenceImage
})

/** What is wrong with the body of a request for a video. */
const videoComplaint = (more: object, referenceImage: ReferenceImage = "optional") =>
  decodeVideoBody(drawn(more)).pipe(
    Either.flatMap((ask) => chooseSeconds(film(referenceImage), ask)),
    Either.flip,
    Either.getOrThrowWith(() => new Error(`nothing is wrong with ${JSON.stringify(more)}`))
  )

const videoComplaints = [
  videoComplaint({ seconds: "8s" }),
  videoComplaint({ input_reference: 1 }),
  videoComplaint({ input_reference: { file_id: "file-1" } }),
  videoComplaint({}, "required"),
  videoComplaint({ image: "https://example.com/a.png" }, "none"),
  Either.getOrThrow(Either.flip(contentOf({ status: "queued", url: undefined })))
]

/** What is wrong with the parameters of an address. */
const queryComplaint = <A, I>(schema: Schema.Schema<A, I>, query: unknown) => {
  const [issue] = ParseResult.ArrayFormatter.formatErrorSync(
    Either.getOrThrow(Either.flip(Schema.decodeUnknownEither(schema)(query)))
  )
  return { message: issue?.message, param: issue?.path.join(".") }
}

const queryComplaints = [
  queryComplaint(VideoListQuery, { order: "newest" }),
  queryComplaint(UsageQuery, { by: "hour" }),
  queryComplaint(UsageQuery, { from: "yesterday" }),
  Either.getOrThrow(Either.flip(rangeOf({ from: 1, to: 1 }, 0))),
  Either.getOrThrow(Either.flip(rangeOf({ from: 0 }, 367 * 86_400_000))),
  queryComplaint(VideoListQuery, { after: ["vid_1", "vid_2"] }),
  queryComplaint(VideoContentQuery, { variant: "thumbnail" })
]

/** The refusal of an answer that is no object. */
const noObject = unsupportedField(
  able(),
  "response_format",
  Either.getOrThrow(
    decodeChatBody(
      asked({ response_format: { type: "json_schema", json_schema: { name: "list", schema: { type: "array" } } } })
    )
  )
)

/** Content that only a route of the request's own API could take. */
const ownContent = { type: "<type>" }
const unsupportedContent = [
  unsupportedField(
    able(),
    "messages",
    Either.getOrThrow(decodeMessagesBody({ model: "<id>", messages: [{ role: "user", content: [ownContent] }] }, {}))
  ),
  renameField(
    unsupportedField(
      able(),
      "messages",
      Either.getOrThrow(decodeResponsesBody({ model: "<id>", input: [...messages, ownContent] }))
    ),
    responsesFieldNames
  )
]

const complaints = [
  ...unsupportedContent,
  complaint([]),
  complaint({ messages }),
  complaint({ model: "<id>", messages: [] }),
  complaint(asked({ messages: [{ role: "bot", content: "" }] })),
  complaint(asked({ messages: [{ role: "tool", content: "", tool_call_id: "call_1" }] })),
  complaint(asked({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] })),
  complaint(asked({ temperature: 3 })),
  complaint(asked({ max_tokens: 0 })),
  complaint(asked({ max_tokens: 9000 }), able({ maxOutputPolicy: "reject" })),
  complaint(asked({ n: 2 })),
  complaint(asked({ stop: Array.from({ length: 17 }, () => "x") })),
  complaint(asked({ tools: [tool] }), plain),
  complaint(asked({ tools: [tool], tool_choice: { type: "function", function: { name: "g" } } })),
  complaint(asked({ functions: [{ name: "f" }] })),
  complaint(asked({ function_call: "auto" })),
  complaint(asked({ response_format: { type: "json_object" } }), plain),
  complaint(asked({ web_search: true }), plain),
  complaint(asked({ reasoning_effort: "low" }), plain),
  complaint(asked({ reasoning_effort: "medium" }), able({ reasoning: ["low", "high"] })),
  complaint(asked({ messages: [{ role: "user", content: [picture] }] }), plain),
  unsupportedCombination(plain, "web_search")
]

/** Every message of a 400 that customers usually meet, with its `param`. */
const messagesOf400: ReadonlyArray<readonly [message: string, param: string | null]> = [
  ["The body is not valid JSON.", null],
  ["The body is not valid UTF-8.", null],
  ["The body must nest at most 128 levels deep.", null],
  ["The body must hold at most 100,000 values.", null],
  ["The body must be a JSON object.", null],
  ["Send the body as JSON with `Content-Type: application/json`, not as a form.", null],
  ["The form is not valid multipart/form-data.", null],
  ["Send the body without compression.", null],
  ["`x-gateway-tag` must be 1 to 64 of A-Z, a-z, 0-9, dots, underscores and dashes.", null],
  ["`model` is required.", "model"],
  ["`messages` is required and must be a non-empty array.", "messages"],
  ["`messages[0].role` must be one of system, developer, user, assistant, tool.", "messages"],
  ["`messages[0].tool_call_id` must match a tool call in an earlier assistant message.", "messages"],
  ["`prompt` is required.", "prompt"],
  ["`prompt` must have at most 1,000,000 characters.", "prompt"],
  ["`image` is required.", "image"],
  ["`image` must be a string or an array of strings.", "image"],
  ["`image` must hold at most 8 images.", "image"],
  ["The content block `<type>` is not available for `<id>`.", "messages"],
  ["The item `<type>` is not available for `<id>`.", "input"],
  ["Failed to process the reference image.", "messages"],
  ["Failed to process the reference image.", "image"],
  ["Image editing is not available for `<id>`.", "image"],
  ["Resolution 4k is not available for `<id>`.", "resolution"],
  ["`size` must be auto, or a width and a height such as 1024x1536.", "size"],
  ["`size` must be one of auto, 1024x1024, 1536x1024 for `<id>`.", "size"],
  ["`aspect_ratio` must be one of auto, 1:1, 3:2 for `<id>`.", "aspect_ratio"],
  ["`image` must hold at most 1 image for `<id>`.", "image"],
  ["`response_format` must be url or b64_json.", "response_format"],
  ["`mask` is not supported: describe the edit in `prompt`.", "mask"],
  ["`images` is not supported: use `image`.", "images"],
  ["`stream` must be false: images are not streamed.", "stream"],
  ["`seconds` must be an integer.", "seconds"],
  ["`input_reference` must be a string, a file or an object with `image_url`.", "input_reference"],
  ["`input_reference.file_id` is not supported: send the image itself, or its URL as `image_url`.", "input_reference"],
  ["Text-to-video is not available for `<id>` - a reference image is required.", null],
  ["Image-to-video is not available for `<id>`.", "image"],
  ["The video is not completed.", null],
  ["`variant` must be video: there are no thumbnails and no spritesheets.", "variant"],
  ["`after` must be the id of a video of your organization.", "after"],
  ["`order` must be asc or desc.", "order"],
  ["`by` must be one of day, model, key, tag.", "by"],
  ["`from` must be a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z.", "from"],
  ["`from` must be before `to`.", "from"],
  ["`from` and `to` must be at most 366 days apart.", "from"],
  ["`Idempotency-Key` must be 1 to 255 visible ASCII characters.", null],
  ["`temperature` must be a number from 0 to 2.", "temperature"],
  ["`max_tokens` must be an integer of at least 1.", "max_tokens"],
  ["`max_tokens` must be at most 8192 for `<id>`.", "max_tokens"],
  ["`n` must be 1.", "n"],
  ["`n` must be 1: send one request per image.", "n"],
  ["`stop` must hold at most 16 strings.", "stop"],
  ["`tools` is not available for `<id>`.", "tools"],
  ["`tool_choice` must name one of `tools`.", "tool_choice"],
  ["`functions` is not supported: use `tools`.", "functions"],
  ["`function_call` is not supported: use `tool_choice`.", "function_call"],
  ["`response_format` is not available for `<id>`.", "response_format"],
  ["`web_search` is not available for `<id>`.", "web_search"],
  ["`reasoning_effort` is not available for `<id>`.", "reasoning_effort"],
  ["`reasoning_effort` must be one of low, high for `<id>`.", "reasoning_effort"],
  ["Image input is not available for `<id>`.", "messages"],
  ["No provider of `<id>` supports all features of the request together.", "web_search"]
]

describe("the errors of the docs", () => {
  it("are those of the table: npm run docs writes them", () => {
    const { status, stderr } = spawnSync(process.execPath, ["tables.mjs", "--check"], { cwd: root, encoding: "utf8" })
    assert.deepStrictEqual({ status, stderr }, { status: 0, stderr: "" })
  })

  it("are those of the wire, all of them", () => {
    const documented = table(section(errors, "All errors"), "Status").map((row) => row.slice(0, 4).join(" | "))
    const produced = [...failures.map(toWire), internalError].map(cells)
    assert.deepStrictEqual(documented.toSorted(), distinct(produced))
  })

  it("give a hint of every kind that the wire has", () => {
    const documented = table(section(errors, "Hints"), "`hint`").map((row) => row.slice(0, 2).join(" | "))
    const produced = [...hinted, noObject].map((failure) => {
      const { code, hint, message } = toWire(failure).body.error
      return `${hint} | ${code ?? message}`
    })
    assert.deepStrictEqual(documented.toSorted(), produced.toSorted())
    const unexplained = failures.filter(
      (failure) => toWire(failure).body.error.hint !== undefined && !hinted.some(({ _tag }) => _tag === failure._tag)
    )
    assert.deepStrictEqual(
      unexplained.map(({ _tag }) => _tag),
      ["UpstreamRejected"]
    )
  })

  it("tell every reason why a reference image is refused", () => {
    const documented = codeSpans({ ...errors, text: section(errors, "Reference images") })
    assert.includeMembers(
      [...documented],
      allProblems.map((problem) => `${problem}.`)
    )
  })

  it("name every code that a customer can meet", () => {
    const ofTheirs = errorCodes.filter((code) => !codesOfOperators.has(code))
    assert.includeMembers([...codeSpans(errors)], ofTheirs)
  })

  it("have the types of the Messages API by their statuses", () => {
    const documented = table(section(errors, "POST /messages"), "Status").flatMap(([statuses = "", types = ""]) =>
      statuses.split(", ").map((status) => `${status} ${/\w+_error|request_too_large/.exec(types)?.[0]}`)
    )
    const produced = [...failures.map(toWire), internalError].flatMap(({ body, status }) =>
      // Only videos are in conflict.
      status === 409 ? [] : [`${status} ${messagesError(body, undefined).error.type}`]
    )
    assert.deepStrictEqual(documented.toSorted(), distinct(produced))
  })

  it("tell which headers come with an error", () => {
    const sent = failures.flatMap((failure) =>
      Object.entries(toWire(failure).headers ?? {}).map(([name, value]) => `${name}: ${value}`)
    )
    assert.deepStrictEqual([...new Set(sent)].toSorted(), [
      "connection: close",
      "retry-after: 1",
      "retry-after: 42",
      "retry-after: 5",
      "retry-after: 60",
      "x-should-retry: false"
    ])
    for (const header of sent) assert.include(codeSpans(errors), header)
  })

  it.effect("give examples of the messages of 400, which are exactly these", function* () {
    const bodies = yield* Effect.all([
      refusedBody("{"),
      refusedBody(Buffer.from([0xff])),
      refusedBody("[".repeat(129) + "]".repeat(129)),
      refusedBody(`[${"0,".repeat(100_000)}0]`),
      refusedBody("a=b", { "content-type": "application/x-www-form-urlencoded" }),
      refusedBody("{}", { "content-encoding": "gzip" }),
      Effect.flip(keyFrom("")),
      Effect.succeed(refuseTag())
    ])
    const produced = [...bodies, ...complaints, ...imageComplaints, ...videoComplaints, ...queryComplaints].map(
      ({ message, param }) => `${message} | ${param ?? ""}`
    )
    const expected = messagesOf400.map(([message, param]) => `${message} | ${param ?? ""}`)
    assert.deepStrictEqual(expected.toSorted(), distinct(produced))
    const documented = table(section(errors, "Messages of 400"), "`message`").map((row) => row.slice(0, 2).join(" | "))
    assert.isAbove(documented.length, 2)
    assert.includeMembers(expected, documented)
  })
})
