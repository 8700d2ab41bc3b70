import { listedExample } from "./ListedExample.ts"
import { messagesExamples } from "./MessagesExamples.ts"

export interface Examples {
  readonly request?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly answer: unknown
}

const picture = "https://example.com/cat.png"
const created = 1_795_247_029

export const examplesOf = (model: string): Readonly<Record<string, Examples>> => {
  const video = {
    id: "vid_9c2d6a4c1f0b4d5e8a7f3b2c1d0e9f8a",
    object: "video",
    model,
    progress: 0,
    created_at: created,
    seconds: 8
  }
  const ask = (content: unknown) => ({ model, messages: [{ role: "user", content }] })
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 3,
    total_tokens: 12,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 }
  }
  const listed = listedExample(model, created)
  return {
    createChatCompletion: {
      request: {
        "application/json": {
          text: ask("Say hello in one sentence."),
          stream: { ...ask("Say hello."), stream: true, stream_options: { include_usage: true } },
          picture: ask([
            { type: "text", text: "What is in this picture?" },
            { type: "image_url", image_url: { url: picture } }
          ]),
          tools: {
            ...ask("Weather in Oslo?"),
            tools: [
              {
                type: "function",
                function: {
                  name: "get_weather",
                  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
                }
              }
            ]
          }
        }
      },
      answer: {
        id: "chatcmpl-c3828b03a9664179aaf5c5abecc6c987",
        object: "chat.completion",
        created,
        model,
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "Hello there!", refusal: null },
            logprobs: null,
            finish_reason: "stop"
          }
        ],
        usage
      }
    },
    createResponse: {
      request: {
        "application/json": {
          text: { model, input: "Say hello in one sentence." },
          stream: { model, input: [{ role: "user", content: "Say hello." }], stream: true },
          tools: {
            model,
            input: "Weather in Oslo?",
            tools: [
              {
                type: "function",
                name: "get_weather",
                parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
              }
            ]
          }
        }
      },
      answer: {
        id: "resp_c3828b03a9664179aaf5c5abecc6c987",
        object: "response",
        created_at: created,
        status: "completed",
        error: null,
        incomplete_details: null,
        model,
        output: [
          {
            type: "message",
            id: "msg_c3828b03a9664179aaf5c5abecc6c987_0",
            status: "completed",
            role: "assistant",
            content: [{ type: "output_text", text: "Hello there!", annotations: [] }]
          }
        ],
        usage: {
          input_tokens: 9,
          input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
          output_tokens: 3,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 12
        },
        store: false,
        metadata: {}
      }
    },
    ...messagesExamples(model),
    createImage: {
      request: {
        "application/json": {
          generation: { model, prompt: "A lighthouse in fog" },
          edit: { model, prompt: "Put a hat on the cat", image: picture, response_format: "b64_json" }
        }
      },
      answer: { created, data: [{ url: "https://media.example/Zr0v.png" }] }
    },
    createImageEdit: {
      request: {
        "application/json": { edit: { model, prompt: "Put a hat on the cat", image: [picture] } },
        "multipart/form-data": { edit: { model, prompt: "Put a hat on the cat", image: picture } }
      },
      answer: { created, data: [{ url: "https://media.example/Zr0v.png" }] }
    },
    createVideo: {
      request: {
        "application/json": {
          text: { model, prompt: "A lighthouse in fog, waves below", seconds: 8 },
          frame: { model, prompt: "The cat jumps", image: picture }
        },
        "multipart/form-data": {
          frame: { model, prompt: "The cat jumps", seconds: "8", input_reference: picture }
        }
      },
      answer: { ...video, status: "queued" }
    },
    getVideo: {
      answer: {
        ...video,
        status: "completed",
        progress: 100,
        completed_at: created + 84,
        url: "https://media.example/q3Fh.mp4",
        data: [{ url: "https://media.example/q3Fh.mp4" }]
      }
    },
    listVideos: {
      answer: {
        object: "list",
        data: [{ ...video, status: "in_progress", progress: 40 }],
        first_id: video.id,
        last_id: video.id,
        has_more: false
      }
    },
    deleteVideo: {
      answer: { id: video.id, object: "video.deleted", deleted: true }
    },
    listModels: { answer: { object: "list", data: [listed] } },
    getModel: { answer: listed },
    getUsage: {
      answer: {
        object: "list",
        data: [
          {
            day: "2026-11-21",
            requests: 12,
            prompt_tokens: 5210,
            completion_tokens: 1840,
            cached_tokens: 4096,
            cache_write_tokens: 0,
            web_searches: 0,
            charge_usd: 0.0348775
          },
          {
            day: "2026-11-22",
            requests: 1,
            prompt_tokens: 9,
            completion_tokens: 3,
            cached_tokens: 0,
            cache_write_tokens: 0,
            web_searches: 0,
            charge_usd: 0.00005775
          }
        ]
      }
    },
    getRequest: {
      answer: {
        id: "req_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f",
        object: "request",
        created_at: created,
        surface: "chat",
        model,
        stream: false,
        status: 200,
        code: null,
        prompt_tokens: 9,
        completion_tokens: 3,
        cached_tokens: 0,
        cache_write_tokens: 0,
        cache_write_1h_tokens: 0,
        reasoning_tokens: 0,
        web_searches: 0,
        hold_usd: 0.000665,
        charge_usd: 0.00005775,
        attempts: [
          { outcome: "retry", ms: 87 },
          { outcome: "ok", ms: 412 }
        ],
        first_byte_ms: 503,
        total_ms: 505
      }
    },
    getCredits: {
      answer: { object: "credits", available_usd: 99.9984875, balance_usd: 99.9991525, held_usd: 0.000665 }
    }
  }
}
