import type { ChatModel } from "../../domain/Model.ts"
import { created, type Examples, exampleUsage, hello, picture } from "./Example.ts"
import { messagesExamples } from "./MessagesExamples.ts"

export const chatExamples = ({ capabilities, id: model }: ChatModel): Readonly<Record<string, Examples>> => {
  const ask = (content: unknown) => ({ model, messages: [{ role: "user", content }] })
  const usage = {
    prompt_tokens: exampleUsage.prompt,
    completion_tokens: exampleUsage.completion,
    total_tokens: exampleUsage.prompt + exampleUsage.completion,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 }
  }
  return {
    createChatCompletion: {
      request: {
        "application/json": {
          text: ask(hello),
          stream: { ...ask("Say hello."), stream: true, stream_options: { include_usage: true } },
          ...(capabilities.has("vision") && {
            picture: ask([
              { type: "text", text: "What is in this picture?" },
              { type: "image_url", image_url: { url: picture } }
            ])
          }),
          ...(capabilities.has("tools") && {
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
          })
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
          text: { model, input: hello },
          stream: { model, input: [{ role: "user", content: "Say hello." }], stream: true },
          ...(capabilities.has("tools") && {
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
          })
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
          input_tokens: exampleUsage.prompt,
          input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
          output_tokens: exampleUsage.completion,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: exampleUsage.prompt + exampleUsage.completion
        },
        store: false,
        metadata: {}
      }
    },
    ...messagesExamples(model, capabilities)
  }
}
