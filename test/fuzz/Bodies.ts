import { dataUrl, png } from "../harness/fixtures/TinyMedia.ts"

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
const parameters = { type: "object", properties: { a: { type: "string" } } }
const responses = [
  { model: "m1", input: "hi", max_output_tokens: 16, instructions: "be brief", stream: true, store: false },
  {
    model: "s1",
    input: [
      { type: "message", role: "developer", content: "be brief" },
      {
        role: "user",
        content: [
          { type: "input_text", text: "see" },
          { type: "input_image", image_url: picture, detail: "auto" }
        ]
      },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "gAAAA=" },
      { type: "function_call", call_id: "call_1", name: "find", arguments: '{"a":"x"}' },
      { type: "function_call_output", call_id: "call_1", output: "42" },
      { type: "custom_tool_call", call_id: "call_2", name: "patch", input: "x" },
      { type: "custom_tool_call_output", call_id: "call_2", output: [{ type: "input_text", text: "done" }] }
    ],
    tools: [
      { type: "function", name: "find", parameters, strict: false },
      { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "start: /x/" } },
      { type: "namespace", name: "agents", tools: [{ type: "function", name: "spawn", parameters }] },
      { type: "web_search" }
    ],
    tool_choice: "auto",
    parallel_tool_calls: true,
    reasoning: { effort: "low", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    prompt_cache_key: "k",
    stream: true
  },
  {
    model: "s1",
    input: "an object",
    text: { format: { type: "json_schema", name: "o", schema: parameters, strict: false }, verbosity: "low" }
  }
]
const mark = { type: "ephemeral", ttl: "1h" }
const messages = [
  { model: "m1", max_tokens: 16, messages: [{ role: "user", content: "hi" }], temperature: 0.5, stream: true },
  {
    model: "s1",
    max_tokens: 32,
    system: [{ type: "text", text: "be brief", cache_control: mark }],
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: picture.replace(/^.*,/, "") } },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "a page" }, title: "t" }
        ]
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "c2ln" },
          { type: "tool_use", id: "toolu_1", name: "find", input: { a: "x" } }
        ]
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "42" }] }]
      }
    ],
    tools: [{ name: "find", description: "d", input_schema: parameters, cache_control: mark }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
    thinking: { type: "enabled", budget_tokens: 1_024 },
    stop_sequences: ["END"],
    metadata: { user_id: "u" }
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
  { path: "/v1/responses", bodies: responses },
  { path: "/v1/messages", bodies: messages },
  { path: "/v1/messages/count_tokens", bodies: messages.slice(1) },
  { path: "/v1/images/generations", bodies: images },
  { path: "/v1/images/edits", bodies: images.slice(1) },
  { path: "/v1/videos", bodies: videos }
]
export const generatingPaths: ReadonlySet<string> = new Set(endpoints.map(({ path }) => path))
