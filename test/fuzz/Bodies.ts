import { dataUrl, png } from "../harness/fixtures/TinyPictures.ts"

const picture = dataUrl(png, "image/png")

const tool = {
  type: "function",
  function: {
    name: "find",
    description: "d",
    parameters: {
      type: "object",
      properties: { a: { type: "string", enum: ["x", "y"] }, b: { type: "array", items: { type: "integer" } } },
      required: ["a"]
    }
  }
}
const call = { id: "call_1", type: "function", function: { name: "find", arguments: '{"a":"x"}' } }

const chats = [
  { model: "m1", messages: [{ role: "user", content: "hi" }], max_tokens: 16, temperature: 0.5 },
  { model: "m1", messages: [{ role: "user", content: "hi" }], stream: true, stream_options: { include_usage: true } },
  {
    model: "s1",
    messages: [
      { role: "system", content: "be brief" },
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: picture } }
        ]
      },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "42" }
    ],
    tools: [tool],
    tool_choice: "auto",
    max_completion_tokens: 32,
    stop: ["END"]
  },
  {
    model: "s1",
    messages: [{ role: "user", content: "an object" }],
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "o",
        strict: true,
        schema: {
          type: "object",
          properties: { n: { type: "number", minimum: 1 }, s: { type: "string" } },
          required: ["n"]
        }
      }
    },
    reasoning_effort: "low",
    web_search: false,
    seed: 1,
    frequency_penalty: 0.5
  }
]
const images = [
  { model: "i1", prompt: "a boat", response_format: "b64_json" },
  { model: "si", prompt: "a boat", resolution: "1K", image: [picture], quality: "low", n: 1, size: "auto" }
]
const videos = [
  { model: "v1", prompt: "waves", seconds: 4 },
  { model: "v1", prompt: "waves", seconds: "6", image: [picture] },
  { model: "v2", prompt: "waves", duration: 4, input_reference: picture }
]

/** An endpoint that generates, and bodies that it takes. */
interface Endpoint {
  readonly path: string
  readonly bodies: ReadonlyArray<unknown>
}
export const endpoints: ReadonlyArray<Endpoint> = [
  { path: "/v1/chat/completions", bodies: chats },
  { path: "/v1/images/generations", bodies: images },
  { path: "/v1/images/edits", bodies: images.slice(1) },
  { path: "/v1/videos", bodies: videos }
]
export const generatingPaths: ReadonlySet<string> = new Set(endpoints.map(({ path }) => path))
