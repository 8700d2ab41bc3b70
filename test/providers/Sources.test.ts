import type { ChatRequest, Citation, UnknownPart } from "../../src/domain/Chat.ts"
import { hear, joined, request } from "../contracts/ChatHarness.ts"
import type { ChatWire } from "../contracts/ChatHosts.ts"
import { scenarios } from "../contracts/ChatScenarios.ts"
import { assert, describe } from "../harness/It.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "./anthropic/Wire.ts"
import * as Gemini from "./gemini/Wire.ts"
import * as Chat from "./openai-chat/Wire.ts"
import * as Responses from "./openai-responses/Wire.ts"

interface Answered {
  readonly name: string
  readonly wire: ChatWire
  readonly body: unknown
  readonly events: ReadonlyArray<string>
  readonly content: string
  readonly citations?: ReadonlyArray<Citation>
  readonly unread?: ReadonlyArray<UnknownPart>
  readonly stopSequence?: string
  readonly asked?: Partial<ChatRequest>
}

const first = { url: "https://one.test/a", title: "One" }
const second = { url: "https://two.test/b", title: "Two" }
const placed = (source: object, start_index: number, end_index: number) => ({ ...source, start_index, end_index })

const chat = (more: object, choice: object = {}, top: object = {}) => ({
  choices: [{ message: { role: "assistant", content: "Fjörd 😀 deep.", ...more }, finish_reason: "stop", ...choice }],
  ...top
})
const chatEvents = (...deltas: ReadonlyArray<object>) => [
  ...["Fjörd 😀", " deep."].map((content) => Chat.chunk({ content })),
  ...deltas.map((delta) => Chat.chunk(delta))
]
const chatEnd = (choice: object = {}, top: object = {}) => [
  Fake.event({ choices: [{ index: 0, delta: {}, finish_reason: "stop", ...choice }], ...top }),
  Fake.done
]

const nested = [{ type: "url_citation", url_citation: placed({ ...first, content: "It is deep." }, 0, 5) }]
const flat = [placed({ type: "url_citation", ...second }, 9, 14)]
const file = { type: "file", file: { name: "a.pdf" } }
const bothPlaced: ReadonlyArray<Citation> = [
  { ...first, quote: "It is deep.", start: 0, end: 5 },
  { ...second, start: 9, end: 14 }
]

const searchResults = [{ ...first, date: "2026-01-01", snippet: "It is deep." }]
const listed = { search_results: searchResults, citations: [first.url, second.url] }

const part = (text: string, annotations: ReadonlyArray<unknown>) => ({ type: "output_text", text, annotations })
const messageItem = {
  type: "message",
  id: "msg_1",
  role: "assistant",
  status: "completed",
  content: [
    part("Fjörd 😀", [placed({ type: "url_citation", ...first }, 0, 5)]),
    part(" deep.", [placed({ type: "url_citation", ...second }, 1, 6), { type: "file_citation", file_id: "f" }])
  ]
}
const responseBody = { ...Responses.response({}), output: [messageItem] }
const typed = (type: string, fields: object) => `event: ${type}\n${Fake.event({ type, ...fields })}`
const responseText = (content_index: number, delta: string) =>
  typed("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index, delta })
const annotated = (content_index: number, annotation: unknown) =>
  typed("response.output_text.annotation.added", { item_id: "msg_1", output_index: 0, content_index, annotation })

const cited = (source: object) => ({ type: "web_search_result_location", cited_text: "It is deep.", ...source })
const document = { type: "char_location", cited_text: "deep", document_index: 0, document_title: "Fjords" }
const blocks = [
  { type: "text", text: "Fjörd 😀", citations: [cited(first)] },
  { type: "text", text: " deep.", citations: [cited(second), cited(second), document] }
]
const messageBody = (more: object = {}) => ({
  type: "message",
  role: "assistant",
  content: blocks,
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 2 },
  ...more
})
const messageEvents = (end: object = {}) => [
  Anthropic.event({ type: "message_start", message: { usage: { input_tokens: 3 } } }),
  ...blocks.flatMap(({ citations, text }, index) => [
    Anthropic.event({ type: "content_block_start", index, content_block: { type: "text", text: "", citations: [] } }),
    ...citations.map((citation) =>
      Anthropic.event({ type: "content_block_delta", index, delta: { type: "citations_delta", citation } })
    ),
    Anthropic.event({ type: "content_block_delta", index, delta: { type: "text_delta", text } }),
    Anthropic.event({ type: "content_block_stop", index })
  ]),
  Anthropic.event({ type: "message_delta", delta: { stop_reason: "end_turn", ...end }, usage: { output_tokens: 2 } }),
  Anthropic.event({ type: "message_stop" })
]
const wholeBlocks: ReadonlyArray<Citation> = [
  { ...first, quote: "It is deep.", start: 0, end: 8 },
  { ...second, quote: "It is deep.", start: 8, end: 14 }
]

const web = ({ title, url }: typeof first) => ({ web: { uri: url, title } })
const grounding = {
  webSearchQueries: ["fjord"],
  groundingChunks: [web(first), web(second), web({ url: "https://three.test", title: "Three" })],
  groundingSupports: [
    { segment: { endIndex: 6, text: "Fjörd" }, groundingChunkIndices: [0] },
    { segment: { startIndex: 11, endIndex: 17, text: " deep." }, groundingChunkIndices: [0, 1] }
  ]
}
const candidate = (parts: ReadonlyArray<object>, more: object) => ({ candidates: [{ content: { parts }, ...more }] })
const grounded: ReadonlyArray<Citation> = [
  { ...first, start: 0, end: 5 },
  { ...first, start: 8, end: 14 },
  { ...second, start: 8, end: 14 },
  { url: "https://three.test", title: "Three" }
]

const rows: ReadonlyArray<Answered> = [
  {
    name: "annotations, nested and flat",
    wire: Chat.openAiChat,
    body: chat({ annotations: [...nested, ...flat, ...flat, file] }),
    events: [...chatEvents({ annotations: nested }, { annotations: [...flat, file] }), ...chatEnd()],
    content: "Fjörd 😀 deep.",
    citations: bothPlaced,
    unread: [{ part: "block", detail: "annotation file" }]
  },
  {
    name: "lists of what a search found",
    wire: Chat.openAiChat,
    body: chat({}, {}, listed),
    events: [
      ...chatEvents().map((event) => event.replace('"choices"', `"citations":["x"],"choices"`)),
      ...chatEnd({}, listed)
    ],
    content: "Fjörd 😀 deep.",
    citations: [{ ...first, quote: "It is deep." }, { url: second.url }]
  },
  {
    name: "lists with other names",
    wire: Chat.openAiChat,
    body: chat({}, {}, { web_search: [{ link: first.url, title: "One", content: "It is deep." }] }),
    events: [...chatEvents(), ...chatEnd({}, { search_info: { search_results: searchResults } })],
    content: "Fjörd 😀 deep.",
    citations: [{ ...first, quote: "It is deep." }]
  },
  {
    name: "annotations of every part",
    wire: Responses.openAiResponses,
    body: responseBody,
    events: [
      responseText(0, "Fjörd 😀"),
      annotated(0, placed({ type: "url_citation", ...first }, 0, 5)),
      responseText(1, " deep."),
      typed("response.completed", { response: responseBody })
    ],
    content: "Fjörd 😀 deep.",
    citations: [
      { ...first, start: 0, end: 5 },
      { ...second, start: 9, end: 14 }
    ],
    unread: [{ part: "block", detail: "annotation file_citation" }]
  },
  {
    name: "citations of every block",
    wire: Anthropic.anthropic,
    body: messageBody(),
    events: messageEvents(),
    content: "Fjörd 😀 deep.",
    citations: wholeBlocks,
    unread: [{ part: "block", detail: "citation char_location" }]
  },
  {
    name: "what its search found, whose places count bytes",
    wire: Gemini.gemini,
    asked: { webSearch: true },
    body: candidate([{ text: "Fjörd 😀" }, { text: " deep." }], { finishReason: "STOP", groundingMetadata: grounding }),
    events: [
      Fake.event(candidate([{ text: "Fjörd 😀" }], { groundingMetadata: { groundingChunks: [web(first)] } })),
      Fake.event(candidate([{ text: " deep." }], { finishReason: "STOP", groundingMetadata: grounding }))
    ],
    content: "Fjörd 😀 deep.",
    citations: grounded
  },
  {
    name: "the stop sequence, as SGLang names it",
    wire: Chat.openAiChat,
    asked: { stop: ["END"] },
    body: chat({}, { matched_stop: "END" }),
    events: [...chatEvents(), ...chatEnd({ matched_stop: "END" })],
    content: "Fjörd 😀 deep.",
    stopSequence: "END"
  },
  {
    name: "the stop sequence, as vLLM names it",
    wire: Chat.openAiChat,
    asked: { stop: ["\n\n", "END"] },
    body: chat({}, { stop_reason: "\n\n" }),
    events: [...chatEvents(), ...chatEnd({ stop_reason: "\n\n" })],
    content: "Fjörd 😀 deep.",
    stopSequence: "\n\n"
  },
  {
    name: "no token's number, nor a stop sequence that nobody asked for",
    wire: Chat.openAiChat,
    asked: { stop: ["END"] },
    body: chat({}, { matched_stop: 151_645, stop_reason: "<|eot|>" }),
    events: [...chatEvents(), ...chatEnd({ matched_stop: 151_645, stop_reason: "<|eot|>" })],
    content: "Fjörd 😀 deep."
  },
  {
    name: "the stop sequence",
    wire: Anthropic.anthropic,
    asked: { stop: ["END"] },
    body: messageBody({ content: [{ type: "text", text: "a" }], stop_reason: "stop_sequence", stop_sequence: "END" }),
    events: messageEvents({ stop_reason: "stop_sequence", stop_sequence: "END" }).filter(
      (event) => !/citations_delta|index":1/.test(event)
    ),
    content: "a",
    stopSequence: "END"
  }
]

describe("an answer names", () => {
  for (const { asked: chatRequest, body, citations, content, events, name, stopSequence, unread, wire } of rows) {
    scenarios(wire).check(`${name}: ${wire.adapter}`, function* (adapter, fake, route) {
      yield* fake.script(Fake.json(200, body), Fake.sse(...events), Fake.sse(...events))
      const input = request(chatRequest)
      const fullAnswer = yield* adapter.complete(route, input)
      const heard = yield* hear(adapter, route, input)
      const assembled = yield* adapter.complete(route, input)
      assert.isUndefined(heard.failure)
      const expected = { citations, stopSequence, unread }
      for (const answer of [fullAnswer, joined(heard.events), assembled]) {
        assert.deepStrictEqual(
          { citations: answer.citations, stopSequence: answer.stopSequence, unread: answer.unread },
          expected
        )
      }
      assert.strictEqual(fullAnswer.content, content)
    })
  }

  scenarios(Responses.openAiResponses).check(
    "the sources of the text before a stop sequence, wherever the gateway cuts",
    function* (adapter, fake, route) {
      const output = [
        {
          ...messageItem,
          content: [
            part("Fjörd 😀 deep. END more", [
              placed({ type: "url_citation", ...first }, 0, 5),
              placed({ type: "url_citation", ...first }, 9, 23),
              placed({ type: "url_citation", ...second }, 19, 23)
            ])
          ]
        }
      ]
      const body = { ...Responses.response({}), output }
      const held = [
        responseText(0, "Fjörd 😀 deep. E"),
        annotated(0, placed({ type: "url_citation", ...first }, 0, 5)),
        annotated(0, placed({ type: "url_citation", ...first }, 9, 23)),
        responseText(0, "ND more"),
        typed("response.completed", { response: body })
      ]
      yield* fake.script(Fake.json(200, body), Fake.sse(...held))
      const chatRequest = request({ stop: ["END"] })
      const fullAnswer = yield* adapter.complete(route, chatRequest)
      const { events, failure } = yield* hear(adapter, route, chatRequest)
      assert.isUndefined(failure)
      for (const answer of [fullAnswer, joined(events)]) {
        assert.deepInclude(answer, {
          content: "Fjörd 😀 deep. ",
          stopSequence: "END",
          citations: [
            { ...first, start: 0, end: 5 },
            { ...first, start: 9, end: 15 }
          ]
        })
      }
    }
  )

  scenarios(Anthropic.anthropic).check(
    "nothing as unread that the client gets as it is",
    function* (adapter, fake, route) {
      const body = { model: "ours", max_tokens: 9, messages: [{ role: "user", content: "hi" }] }
      const native = { dialect: "messages" as const, body, headers: {}, extraTokens: 0 }
      yield* fake.script(Fake.json(200, messageBody()), Fake.sse(...messageEvents()))
      const fullAnswer = yield* adapter.complete(route, request({ native }))
      const { events } = yield* hear(adapter, route, request({ native }))
      assert.isUndefined(fullAnswer.unread)
      assert.isFalse(events.some(({ type }) => type === "unread"))
    }
  )
})
