/** `accumulate`: what the official clients make of a stream that has come already. */

import Anthropic from "@anthropic-ai/sdk"
import OpenAI from "openai"
import { record } from "../contracts/ChatHosts.ts"
import type { Dialect } from "./Case.ts"

export interface Accumulated {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: unknown }>
}

const options = (text: string) => ({
  baseURL: "http://nowhere.test",
  apiKey: "none",
  maxRetries: 0,
  fetch: () => Promise.resolve(new Response(text, { headers: { "content-type": "text/event-stream" } }))
})

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const readers: Readonly<Record<Exclude<Dialect, "api">, (text: string) => Promise<Accumulated>>> = {
  chat: async (text) => {
    const stream = new OpenAI(options(text)).chat.completions.stream({ model: "m", messages: [] })
    const [choice] = (await stream.finalChatCompletion()).choices
    return {
      text: choice?.message.content ?? "",
      calls: (choice?.message.tool_calls ?? []).flatMap((call) =>
        call.type === "function"
          ? [{ id: call.id, name: call.function.name, arguments: parsed(call.function.arguments) }]
          : []
      )
    }
  },
  responses: async (text) => {
    const { output, output_text } = await new OpenAI(options(text)).responses
      .stream({ model: "m", input: "" })
      .finalResponse()
    return {
      text: output_text,
      calls: output.flatMap((item) => {
        if (item.type === "custom_tool_call") return [{ id: item.call_id, name: item.name, arguments: item.input }]
        if (item.type !== "function_call") return []
        return [{ id: item.call_id, name: item.name, arguments: parsed(item.arguments) }]
      })
    }
  },
  messages: async (text) => {
    const { content } = await new Anthropic(options(text)).messages
      .stream({ model: "m", max_tokens: 1, messages: [] })
      .finalMessage()
    return {
      text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
      calls: content.flatMap((block) =>
        block.type === "tool_use" ? [{ id: block.id, name: block.name, arguments: record(block.input) }] : []
      )
    }
  }
}

/** Fails as the client does. */
export const accumulate = (dialect: Exclude<Dialect, "api">, text: string): Promise<Accumulated> =>
  readers[dialect](text)

/** What it has to be for an answer that we read by ourselves. */
export const asAccumulated = (answer: {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
}) => ({
  text: answer.text,
  calls: answer.calls.map(({ arguments: given, ...call }) => {
    const value = parsed(given)
    // Clients disagree about what no JSON is.
    return { ...call, arguments: value === given ? {} : { $is: value } }
  })
})
