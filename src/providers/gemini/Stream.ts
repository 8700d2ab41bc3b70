import type { ChatEvent } from "../../domain/Chat.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import type { ChatDecoder } from "../chat/ChatStream.ts"
import { malformed, parse } from "../client/Classification.ts"
import { type Reading, reader } from "./Answer.ts"

/** Reads a stream's chunks. The host has no mark for the end: a stream that ends after a `finishReason` is whole. */
export const decoder = (reading: Reading): ChatDecoder => {
  const { provider } = reading.route
  const answer = reader(reading)
  let heard = false

  const chunk: ChatDecoder["take"] = ({ data }, out) => {
    if (data.trim() !== "[DONE]") return answer.take(parse(data), out)
    return answer.end(out) ? "whole" : malformed(provider, 200, "[DONE] without a finishReason")
  }

  return {
    take: (event, out: Array<ChatEvent>) => {
      const outcome = chunk(event, out)
      // From the provider's first event on its work is paid for, so even one without output is told.
      if (!heard && outcome === undefined && out.length === 0) out.push({ type: "content", text: "" })
      heard = true
      return outcome
    },
    close: (out, cause) => {
      if (answer.end(out)) return undefined
      return cause ?? new ProviderFailure({ class: "network", status: 200, detail: "stream ended early" })
    },
    overflow: () => malformed(provider, 200, "an event is too large"),
    used: answer.used
  }
}
