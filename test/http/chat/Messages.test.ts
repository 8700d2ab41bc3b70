import { explainReference, referenceProblems, unusableReference } from "../../../src/domain/Media.ts"
import { assert, describe, it } from "../../harness/It.ts"
import type { Words } from "../openapi/Published.ts"
import { call, chatBody, decodeBody, hi, imageUrl, png, refusal } from "./ChatBodies.ts"

describe("the messages of a chat", () => {
  const heard = (...messages: ReadonlyArray<unknown>): unknown =>
    JSON.parse(JSON.stringify(decodeBody(chatBody(...messages)).messages))
  const user = (...content: ReadonlyArray<unknown>) => ({ role: "user", content })
  const assistant = (fields: object) => ({ role: "assistant", ...fields })
  const result = (content: unknown, id: string) => ({ role: "tool", content, tool_call_id: id })
  const text = (text: string) => [{ type: "text", text }]
  const silent = assistant({ content: null })
  const drawn = "data:image/svg+xml;charset=utf-8;base64,AAAA"
  const detailed = (url: string, detail: unknown) => ({ type: "image_url", image_url: { url, detail } })
  const nulls = { refusal: null, tool_calls: null, function_call: null, audio: null, annotations: [], name: null }
  const twoCalls = assistant({ content: null, tool_calls: [call("a"), call("b")] })
  const oneCall = assistant({ content: null, tool_calls: [call("c")] })

  it.each<[what: string, messages: ReadonlyArray<unknown>, read?: ReadonlyArray<unknown>]>([
    ["a system text", [{ role: "system", content: "s" }]],
    [
      "a developer as system",
      [{ role: "developer", content: "s", name: "n" }],
      [{ role: "system", content: "s", name: "n" }]
    ],
    [
      "text parts in every role",
      [
        { role: "system", content: [{ type: "text", text: "s", verbosity: {} }] },
        user(...text("u")),
        assistant({ content: text("a"), tool_calls: [call("c")] }),
        result(text("t"), "c")
      ],
      [
        { role: "system", content: text("s") },
        user(...text("u")),
        assistant({ content: text("a"), tool_calls: [call("c")] }),
        result(text("t"), "c")
      ]
    ],
    ["images in a user's message", [user(...text(""), imageUrl("https://x.test/a.png"), detailed(png, "high"))]],
    [
      "images of other spellings in a user's message",
      [user(imageUrl("HTTP://x.test/a.png"), detailed(drawn, null))],
      [user(imageUrl("HTTP://x.test/a.png"), imageUrl(drawn))]
    ],
    [
      "an assistant's message of nothing",
      [hi, assistant({}), assistant({ content: null, tool_calls: [] }), hi],
      [hi, silent, silent, hi]
    ],
    ["an empty text", [{ role: "user", content: "" }]],
    [
      "tool calls without content",
      [hi, assistant({ tool_calls: [call("c")] }), result("1", "c")],
      [hi, oneCall, result("1", "c")]
    ],
    [
      "tool calls with empty content",
      [hi, assistant({ content: [], tool_calls: [{ ...call("c"), type: undefined }] })],
      [hi, oneCall]
    ],
    ["results out of order and late", [twoCalls, result("2", "b"), hi, result("1", "a")]],
    [
      "a refusal as what was said",
      [assistant({ content: null, refusal: "no" }), assistant({ content: [{ type: "refusal", refusal: "no" }] })],
      [assistant({ content: "no" }), assistant({ content: text("no") })]
    ],
    [
      "an answer of before, with its nulls",
      [assistant({ content: "a", reasoning_content: "r", ...nulls })],
      [assistant({ content: "a", reasoning_content: "r" })]
    ],
    ["an empty list of calls", [assistant({ content: "a", tool_calls: [] })], [assistant({ content: "a" })]],
    [
      "texts and pictures under the names of other dialects",
      [
        user(
          { type: "input_text", text: "a" },
          { type: "output_text", text: "b" },
          { type: "input_image", image_url: png, detail: "original" },
          { type: "image_url", image_url: png },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
          { type: "image", source: { type: "url", url: "https://x.test/a.png" } }
        ),
        assistant({ content: [{ type: "output_text", text: "c" }] })
      ],
      [
        user(
          ...text("a"),
          ...text("b"),
          detailed(png, "high"),
          imageUrl(png),
          imageUrl(png),
          imageUrl("https://x.test/a.png")
        ),
        assistant({ content: text("c") })
      ]
    ],
    [
      "calls of custom tools and flat ones",
      [
        assistant({
          content: null,
          tool_calls: [
            { id: "1", type: "custom", custom: { name: "patch", input: 'say "hi"' } },
            { id: "2", type: "custom", name: "patch", input: "" },
            { id: "3", type: "function", name: "f", arguments: "{}" }
          ]
        }),
        result("done", "1")
      ],
      [
        assistant({
          content: null,
          tool_calls: [
            { id: "1", type: "function", function: { name: "patch", arguments: '{"input":"say \\"hi\\""}' } },
            { id: "2", type: "function", function: { name: "patch", arguments: '{"input":""}' } },
            { id: "3", type: "function", function: { name: "f", arguments: "{}" } }
          ]
        }),
        result("done", "1")
      ]
    ],
    ["reasoning alone", [assistant({ content: null, reasoning_content: "r" })]]
  ])("may have %s", (_, messages, read = messages) => {
    assert.deepStrictEqual(heard(...messages), read)
  })

  const badImage: Words = [
    unusableReference,
    explainReference(referenceProblems.neitherUrl, "The image of `messages[0].content[0]`")
  ]
  const badRole = "`messages[0].role` must be one of system, developer, user, assistant, tool."
  const noContent = "`messages[0].content` must be a string or an array of content parts."
  const noText = "`messages[0].content[0].text` must be a string."
  const noKind = "`messages[0].content[0].type` must be one of text, image_url."
  const textOnly = "`messages[0].content[0]` must be text: only user messages may contain images."
  const noUrl = "`messages[0].content[0].image_url` must be a URL, or an object with a `url`."
  const noFunction =
    "`messages[0].tool_calls[0].function` must be an object with a `name` and an `arguments` string of JSON."
  const unanswered = "`messages[0].tool_call_id` must match a tool call in an earlier assistant message."
  const answering = (fields: object) => ({ role: "tool", content: "x", ...fields })
  const called = assistant({ tool_calls: [call("c")] })

  it.each<readonly [body: unknown, words: Words]>([
    [chatBody("hi"), "`messages[0]` must be an object."],
    [chatBody(null), "`messages[0]` must be an object."],
    [chatBody(hi, [hi]), "`messages[1]` must be an object."],
    [chatBody({ content: "x" }), badRole],
    [chatBody({ role: "bot", content: "x" }), badRole],
    [
      chatBody({ role: "function", name: "f", content: "x" }),
      "`messages[0].role` cannot be function: send the result as a tool message."
    ],
    ...["system", "developer", "user"].flatMap(
      (role) =>
        [
          [chatBody({ role }), noContent],
          [chatBody({ role, content: null }), noContent],
          [chatBody({ role, content: { type: "text", text: "x" } }), noContent],
          [chatBody({ role, content: [] }), "`messages[0].content` must not be an empty array."],
          [chatBody({ role, content: "x", name: 1 }), "`messages[0].name` must be a string."],
          [chatBody({ role, content: ["x"] }), "`messages[0].content[0]` must be an object."],
          [chatBody({ role, content: [{ type: "text", text: 1 }] }), noText],
          [chatBody({ role, content: [{ type: "text" }] }), noText]
        ] as const
    ),
    [
      chatBody({ role: "system", content: [{ type: "audio" }] }),
      "`messages[0].content[0].type` must be text, not `audio`."
    ],
    [chatBody(user({ type: "input_audio", input_audio: {} })), noKind.replace(/[.]$/, ", not `input_audio`.")],
    [chatBody(user({ text: "x" })), noKind],
    [chatBody({ role: "system", content: [imageUrl(png)] }), textOnly],
    [chatBody(assistant({ content: [imageUrl(png)] })), textOnly],
    [chatBody(hi, user(...text("x"), { type: "image_url" })), noUrl.replace("[0].content[0]", "[1].content[1]")],
    [chatBody(user({ type: "image_url", image_url: [] })), noUrl],
    [chatBody(user(imageUrl(1))), noUrl],
    [chatBody(user(imageUrl(""))), noUrl],
    [chatBody(user(detailed(png, "max"))), "`messages[0].content[0].image_url.detail` must be one of auto, low, high."],
    ...[
      "ftp://x.test/a.png",
      "file:///etc/passwd",
      "javascript:alert(1)",
      "a.png",
      "http://",
      "https://[",
      "iVBORw0KGgo=",
      "data:text/plain;base64,AAAA",
      "data:image/png,AAAA",
      "data:image/png;base64,",
      "data:;base64,AAAA",
      ` ${png}`
    ].map((url) => [chatBody(user(imageUrl(url))), badImage] as const),
    [chatBody(assistant({ content: 1 })), noContent],
    [chatBody(assistant({ content: "x", refusal: 1 })), "`messages[0].refusal` must be a string."],
    [chatBody(assistant({ content: [{ type: "refusal" }] })), "`messages[0].content[0].refusal` must be a string."],
    [chatBody(assistant({ content: "x", reasoning_content: {} })), "`messages[0].reasoning_content` must be a string."],
    [chatBody(assistant({ content: "x", name: {} })), "`messages[0].name` must be a string."],
    [
      chatBody(assistant({ content: null, function_call: { name: "f", arguments: "" } })),
      "`messages[0].function_call` is not supported: send `tool_calls`."
    ],
    [chatBody(assistant({ tool_calls: {} })), "`messages[0].tool_calls` must be an array."],
    [chatBody(assistant({ tool_calls: ["c"] })), "`messages[0].tool_calls[0]` must be an object."],
    [
      chatBody(assistant({ tool_calls: [call("c"), call("")] })),
      "`messages[0].tool_calls[1].id` is required and must be a non-empty string."
    ],
    [
      chatBody(assistant({ tool_calls: [{ ...call("c"), type: "other" }] })),
      "`messages[0].tool_calls[0].type` must be function or custom."
    ],
    [
      chatBody(assistant({ tool_calls: [{ ...call("c"), type: "custom" }] })),
      "`messages[0].tool_calls[0].custom` must be an object with a `name` and an `input` string."
    ],
    ...[undefined, {}, { name: "f" }, { name: "", arguments: "{}" }, { name: "f", arguments: {} }].map(
      (made) =>
        [chatBody(assistant({ tool_calls: [{ id: "c", type: "function", function: made }] })), noFunction] as const
    ),
    [chatBody(answering({})), "`messages[0].tool_call_id` is required and must be a non-empty string."],
    [chatBody(answering({ tool_call_id: "c" })), unanswered],
    [chatBody(answering({ tool_call_id: "c" }), called), unanswered],
    [chatBody(answering({ tool_call_id: "__proto__" })), unanswered],
    [chatBody(called, { role: "tool", tool_call_id: "c" }), noContent.replace("0", "1")],
    [chatBody(called, answering({ tool_call_id: "c", content: [imageUrl(png)] })), textOnly.replace("0", "1")]
  ])("are refused as %j: %s", (body, words) => {
    assert.deepStrictEqual(refusal(body), ["InvalidRequest", "messages", ...[words].flat()])
  })
})
