import type { Capability } from "../../domain/Model.ts"
import { exampleUsage, hello } from "./Example.ts"

export const messagesExamples = (model: string, capabilities: ReadonlySet<Capability>) => {
  const ask = (content: unknown) => ({ model, messages: [{ role: "user", content }] })
  return {
    createMessage: {
      request: {
        "application/json": {
          text: { ...ask(hello), max_tokens: 1024 },
          ...(capabilities.has("tools") && {
            agent: {
              ...ask([{ type: "text", text: "Weather in Oslo?", cache_control: { type: "ephemeral" } }]),
              max_tokens: 4096,
              stream: true,
              system: "You are brief.",
              thinking: { type: "adaptive" },
              tools: [
                {
                  name: "get_weather",
                  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
                }
              ]
            }
          })
        }
      },
      answer: {
        id: "msg_019ab2c4d5e67f8091a2b3c4d5e6f708",
        type: "message",
        role: "assistant",
        model,
        content: [{ type: "text", text: "Hello there!" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        stop_details: null,
        container: null,
        usage: {
          input_tokens: exampleUsage.prompt,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
          output_tokens: exampleUsage.completion,
          output_tokens_details: { thinking_tokens: 0 },
          server_tool_use: null
        }
      }
    },
    countTokens: {
      request: { "application/json": { text: ask(hello) } },
      answer: { input_tokens: 12 }
    }
  }
}
