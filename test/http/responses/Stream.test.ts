import { createOpenAI } from "@ai-sdk/openai"
import { APICallError, streamText } from "ai"
import { Either, Struct } from "effect"
import OpenAI from "openai"
import type { Response as OpenAiResponse, ResponseStreamEvent } from "openai/resources/responses/responses"
import {
  type ChatAnswer,
  type ChatEvent,
  type ChatRequest,
  type Citation,
  unsignedMark
} from "../../../src/domain/Chat.ts"
import {
  InsufficientCredits,
  NoHealthyProvider,
  TimedOut,
  UpstreamFailed,
  UpstreamRejected
} from "../../../src/domain/Failure.ts"
import { zero } from "../../../src/domain/Money.ts"
import { encodeBrokenStream, toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { decodeResponsesBody } from "../../../src/http/responses/ResponsesBody.ts"
import { responses } from "../../../src/http/responses/ResponsesDialect.ts"
import { responseJson } from "../../../src/http/responses/ResponsesObject.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { accepts } from "../openapi/Published.ts"

const name = { id: "resp_0a", created: 7, model: "m" }
const usage = { prompt: 9, completion: 5, cached: 4, cacheWrite: 2, reasoning: 1 }
const billed = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 14
}

const requestOf = (more: object = {}): ChatRequest =>
  Either.getOrThrow(decodeResponsesBody({ model: "m", input: "hi", ...more }))

/** What the official client makes of a stream's text. */
const read = async (text: string) => {
  const answer = async () => new Response(text, { headers: { "content-type": "text/event-stream" } })
  const stream = await new OpenAI({ apiKey: "k", fetch: answer }).responses.create({ model: "m", stream: true })
  const events: Array<ResponseStreamEvent> = []
  for await (const event of stream) events.push(event)
  return events
}

const finalOf = async (text: string): Promise<OpenAiResponse> => {
  const answer = async () => new Response(text, { headers: { "content-type": "text/event-stream" } })
  const { output_parsed: _, ...final } = await new OpenAI({ apiKey: "k", fetch: answer }).responses
    .stream({ model: "m" })
    .finalResponse()
  return final
}

const encode = (request: ChatRequest, ...batches: ReadonlyArray<ReadonlyArray<ChatEvent>>) => {
  const encoder = responses.encoder(name, request)
  return batches.map((events) => encoder.encode(events)).join("") + encoder.finish(usage, zero)
}

const textEvent = (text: string): ChatEvent => ({ type: "content", text })
const thought = (text: string): ChatEvent => ({ type: "reasoning", text })
const stop: ChatEvent = { type: "finish", reason: "stop" }
const called = (index: number, more: object): ChatEvent => ({ type: "tool_call", index, arguments: "", ...more })
const callOf = (id: string, functionName: string, input: string) => ({
  id,
  type: "function" as const,
  function: { name: functionName, arguments: input }
})

const tools = [
  { type: "function", name: "f" },
  { type: "custom", name: "patch" },
  { type: "namespace", name: "agents", tools: [{ type: "function", name: "spawn" }] }
]
const encrypted = { include: ["reasoning.encrypted_content"] }
const plain: ChatAnswer = { content: "Hi\n👋", reasoning: undefined, toolCalls: [], finish: "stop", usage: undefined }
const calls = [
  { ...callOf("c1", "f", '{"a":"\\u0000👋"}'), signature: "s" },
  callOf("c2", "patch", '{"input":"*** Begin\\n\\"x\\""}'),
  callOf("c3", "agents__spawn", "{}")
]
const callEvents = [
  called(0, { id: "c1", name: "f", signature: "s" }),
  called(1, { id: "c2", name: "patch", arguments: '{"input":"*** Be' }),
  called(0, { arguments: '{"a":"\\u0000\ud83d' }),
  called(0, { arguments: '\udc4b"}' }),
  called(1, { arguments: 'gin\\n\\"x\\""}' }),
  called(2, { id: "c3", name: "agents__spawn", arguments: "{}" })
]

const source = { url: "https://a.example/", title: "A\u0000", start: 0, end: 2 }
const bare = { url: "https://b.example/" }
const cites = (citation: Citation): ChatEvent => ({ type: "citation", citation })

/** An answer, and a stream that says the same. */
const answers: ReadonlyArray<readonly [string, object, ChatAnswer, ReadonlyArray<ChatEvent>]> = [
  ["a text", {}, plain, [textEvent(""), textEvent("Hi\n\ud83d"), textEvent("\udc4b"), stop]],
  ["nothing", {}, { ...plain, content: "" }, [stop]],
  [
    "a text and reasoning",
    {},
    { ...plain, reasoning: "Hm. So" },
    [thought("Hm."), thought(" So"), textEvent("Hi\n👋"), stop]
  ],
  ["a text without the reasoning that was asked for", encrypted, plain, [textEvent("Hi\n👋"), stop]],
  ["signed reasoning", encrypted, { ...plain, reasoning: "Hm." }, [thought("Hm."), textEvent("Hi\n👋"), stop]],
  [
    "a text with sources",
    {},
    { ...plain, citations: [bare, source] },
    [cites(bare), textEvent("Hi\n"), cites(source), textEvent("👋"), stop]
  ],
  ["calls", { tools }, { ...plain, content: null, toolCalls: calls, finish: "tool_calls" }, [...callEvents, stop]],
  [
    "a text and calls after reasoning",
    { tools, ...encrypted },
    { ...plain, reasoning: "Hm.", toolCalls: calls, finish: "tool_calls" },
    [thought("Hm."), textEvent("Hi\n👋"), ...callEvents, stop]
  ],
  [
    "a text at the cap",
    {},
    { ...plain, finish: "length" },
    [textEvent("Hi\n👋"), { type: "finish", reason: "length" }]
  ],
  [
    "a text that was stopped",
    {},
    { ...plain, finish: "content_filter" },
    [textEvent("Hi\n👋"), { type: "finish", reason: "content_filter" }]
  ]
]

describe("a response", () => {
  it.each(answers)("with %s is the same whole and streamed", async (_, more, answer, events) => {
    const request = requestOf({ instructions: "Be kind.", metadata: { a: "b" }, ...more })
    const response: unknown = JSON.parse(JSON.stringify(responseJson(name, request, answer, usage)))
    assert.isTrue(accepts("Response", response), JSON.stringify(response))
    for (const text of [encode(request, events), encode(request, ...events.map((event) => [event]))]) {
      const { output, output_text } = await finalOf(text)
      assert.strictEqual(output_text, answer.content ?? "")
      assert.lengthOf(Object(response).output, output.length)
      const last = (await read(text)).at(-1)
      assert.oneOf(last?.type, ["response.completed", "response.incomplete"])
      assert.deepStrictEqual(Reflect.get(Object(last), "response"), response)
    }
  })

  it.each(answers)("with %s streams events that are numbered, named and in order", async (_, more, __, events) => {
    const text = encode(requestOf(more), ...events.map((event) => [event]))
    const names = [...text.matchAll(/^event: (.+)\ndata: \{"type":"(.+?)"/gm)].map(([, event, type]) => [event, type])
    assert.lengthOf(names, text.split("\n\n").length - 1)
    for (const [event, type] of names) assert.strictEqual(event, type)
    const added = new Set<unknown>()
    for (const [at, event] of (await read(text)).entries()) {
      assert.propertyVal(event, "sequence_number", at)
      assert.isTrue(accepts("ResponseStreamEvent", event), JSON.stringify(event))
      if (event.type === "response.output_item.added") added.add(event.item.id)
      else if ("item_id" in event) assert.isTrue(added.has(event.item_id), event.type)
    }
  })

  it("announces each source while its text is open, by its place in that text", async () => {
    const events = [textEvent("One."), called(0, { id: "c", name: "f", arguments: "{}" }), textEvent("Two."), stop]
    const places = { ...source, start: 4, end: 8 }
    const text = encode(requestOf({ tools }), events.slice(0, 3), [cites(places)], [stop])
    const all = await read(text)
    const added = all.filter(({ type }) => type === "response.output_text.annotation.added")
    const annotation = { type: "url_citation", url: source.url, title: source.title, start_index: 0, end_index: 4 }
    assert.deepInclude(added[0], { output_index: 2, content_index: 0, annotation_index: 0, annotation })
    assert.isBelow(
      all.findIndex(({ type }) => type === "response.output_text.annotation.added"),
      all.findLastIndex(({ type }) => type === "response.content_part.done")
    )
    const { output } = await finalOf(text)
    assert.deepInclude(Object(output[2]).content[0], { text: "Two.", annotations: [annotation] })
  })

  it("has an item of its own for a source after the last text", async () => {
    const late = [textEvent("One."), called(0, { id: "c", name: "f", arguments: "{}" }), cites(bare), stop]
    const { output } = await finalOf(encode(requestOf({ tools }), late))
    const annotation = { type: "url_citation", url: bare.url, title: bare.url, start_index: 0, end_index: 0 }
    assert.deepInclude(Object(output[2]).content[0], { text: "", annotations: [annotation] })
  })

  it("gives a custom tool's call back with its plain input, and a namespace's under its own names", async () => {
    const { output } = await finalOf(encode(requestOf({ tools }), callEvents, [stop]))
    assert.deepInclude(output[1], { type: "custom_tool_call", name: "patch", input: '*** Begin\n"x"', call_id: "c2" })
    assert.deepInclude(output[2], { type: "function_call", name: "spawn", namespace: "agents", call_id: "c3" })
    const other = [called(0, { id: "c", name: "patch", arguments: '{"patch":"y"}' }), stop]
    const bare = [called(0, { id: "c", name: "patch", arguments: "*** Begin" }), stop]
    assert.deepInclude((await finalOf(encode(requestOf({ tools }), other))).output[0], { input: "y" })
    assert.deepInclude((await finalOf(encode(requestOf({ tools }), bare))).output[0], { input: "*** Begin" })
  })

  it("to a large request does not repeat it", async () => {
    const large = { ...requestOf({ instructions: "Be kind.", tools, metadata: { a: "b" } }), isLarge: true }
    const { output, ...head } = await finalOf(encode(large, [called(0, { id: "c", name: "agents__spawn" }), stop]))
    assert.deepInclude(head, { instructions: null, tools: [], metadata: { a: "b" } })
    assert.deepInclude(output[0], { namespace: "agents", name: "spawn" })
  })

  it("shows hour-long cache writes and searches where there are any", () => {
    const more = { ...usage, cacheWriteHour: 1, webSearches: 2 }
    const { usage: shown } = responseJson(name, requestOf(), plain, more)
    const details = { ...billed.input_tokens_details, cache_write_1h_tokens: 1 }
    const server_tool_use = { web_search_requests: 2 }
    assert.deepStrictEqual(shown, { ...billed, input_tokens_details: details, server_tool_use })
  })

  it("that shows no reasoning has an empty item of it where the client asked for one", async () => {
    const { output } = await finalOf(encode(requestOf(encrypted), [textEvent("x"), stop]))
    assert.deepInclude(output[0], { type: "reasoning", summary: [], encrypted_content: unsignedMark })
  })

  it("that a provider refused late says why", async () => {
    const { body } = toWire(new UpstreamRejected({ param: null }))
    const last = (
      await read(responses.encoder(name, requestOf()).error(body, "Too long.", "context_length_exceeded"))
    ).at(-1)
    assert.deepStrictEqual<unknown>(Reflect.get(Object(Reflect.get(Object(last), "response")), "error"), {
      code: "context_length_exceeded",
      message: "Too long."
    })
  })

  it("that fails late has a message of the AI SDK, whatever stands beside it", async () => {
    const { body } = toWire(new InsufficientCredits({ needed: undefined, available: 0n }))
    const text = responses.encoder(name, requestOf()).error(body)
    const answer = async () => new Response(text, { headers: { "content-type": "text/event-stream" } })
    const model = createOpenAI({ apiKey: "k", fetch: answer })("m")
    const errors: Array<unknown> = []
    const onError = ({ error }: { readonly error: unknown }) => void errors.push(error)
    await streamText({ model, prompt: "hi", maxRetries: 0, onError }).consumeStream()
    const [error] = errors
    assert.isTrue(APICallError.isInstance(error))
    assert.strictEqual(Object(error).message, "Insufficient credits.")
  })

  it.each([
    [encodeBrokenStream(new UpstreamFailed()), "server_error"],
    [encodeBrokenStream(new TimedOut()), "server_error"],
    [toWire(new NoHealthyProvider()).body, "server_error"],
    [toWire(new InsufficientCredits({ needed: undefined, available: 0n })).body, "insufficient_quota"]
  ])("that breaks ends with its failure: %j", async (envelope, code) => {
    for (const batch of [[], [thought("Hm."), textEvent("Hi")]]) {
      const encoder = responses.encoder(name, requestOf())
      const text = (batch.length === 0 ? "" : encoder.encode(batch)) + encoder.error(envelope)
      const events = await read(text)
      const last = events.at(-1)
      assert.strictEqual(events[0]?.type, "response.created")
      if (last?.type !== "response.failed") throw new Error(`it ends with ${last?.type}`)
      assert.isTrue(accepts("ResponseStreamEvent", last))
      assert.strictEqual(last.response.status, "failed")
      const { hint, message } = envelope.error
      const expected = { code, message, ...(hint === undefined ? {} : { hint }) }
      assert.deepStrictEqual<unknown>(last.response.error, expected)
      assert.lengthOf(last.response.output, batch.length === 0 ? 0 : 1)
    }
  })
})

describe("a response of a host that speaks the convention", () => {
  const native = (event: object): ChatEvent => ({ type: "native", event: { sequence_number: 99, ...event } })
  const theirs = {
    id: "resp_theirs",
    object: "response",
    model: "gpt-theirs",
    created_at: 3,
    store: false,
    metadata: {}
  }
  const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA=" }
  const done = { type: "response.output_item.done", output_index: 0, item }
  const answer = {
    ...theirs,
    status: "completed",
    error: null,
    incomplete_details: null,
    output: [item],
    usage: { ...billed, output_tokens: 999, extra: 1 }
  }
  const costly = {
    ...answer,
    usage: { ...answer.usage, cost_in_usd_ticks: 1, cost: 2, cost_details: {}, is_byok: true }
  }
  const start = [native({ type: "response.created", response: { ...theirs, status: "in_progress", output: [] } })]
  const end = native({ type: "response.completed", response: answer })

  it("passes on what the host sends, under the gateway's name and with what is billed", async () => {
    const encoder = responses.encoder(name, requestOf())
    const before =
      encoder.encode([...start, thought("Hm.")]) + encoder.encode([native(done), textEvent("x"), end, stop])
    assert.notInclude(before, "response.completed")
    assert.notInclude(before, "theirs")
    const ours = { ...answer, id: "resp_0a", model: "m", usage: { ...billed, extra: 1 } }
    assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(await read(before + encoder.finish(usage, zero)))), [
      {
        type: "response.created",
        sequence_number: 0,
        response: { ...theirs, id: "resp_0a", model: "m", status: "in_progress", output: [] }
      },
      { ...done, sequence_number: 1 },
      { type: "response.completed", sequence_number: 2, response: ours }
    ])
    const response = responseJson(name, requestOf(), { ...plain, native: answer }, usage)
    assert.deepStrictEqual(response, ours)
  })

  it("is passed on without what the host charges for it", async () => {
    const { id: _id, model: _model, ...expected } = { ...answer, usage: { ...billed, extra: 1 } }
    const response = responseJson(name, requestOf(), { ...plain, native: costly }, usage)
    assert.deepInclude<object>(response, expected)
    const encoder = responses.encoder(name, requestOf())
    const early = native({ type: "response.in_progress", response: costly })
    const text = encoder.encode([...start, early, native({ type: "response.completed", response: costly })])
    assert.notMatch(text + encoder.finish(usage, zero), /cost|byok/)
  })

  it("keeps its client waiting with the host's events that have no members", async () => {
    const text = responses.encoder(name, requestOf()).encode([...start, native({ type: "keepalive" })])
    const [, keepalive] = await read(text)
    assert.deepStrictEqual<unknown>(keepalive, { type: "keepalive", sequence_number: 1 })
  })

  it("tells a break in the gateway's words", async () => {
    const encoder = responses.encoder(name, requestOf())
    const failed = native({ type: "response.failed", response: { ...theirs, error: { message: "theirs" } } })
    const error = native({ type: "error", message: "theirs" })
    const text = encoder.encode([...start, failed, error]) + encoder.error(encodeBrokenStream(new UpstreamFailed()))
    assert.notInclude(text, "theirs")
    assert.deepStrictEqual((await read(text)).map(Struct.get("type")), ["response.created", "response.failed"])
  })
})
