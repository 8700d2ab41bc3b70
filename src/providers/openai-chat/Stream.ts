import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import type { ChatDecoder } from "../chat/ChatStream.ts"
import { malformed, parse, refusal } from "../client/Classification.ts"
import { errorIn, finishOf, isBreak, type NewId, reasoningOf, textOf, usageOf } from "./Answer.ts"
import * as ToolCalls from "./ToolCalls.ts"

/** Reads `chat.completion.chunk` events. Finish and usage are told last, once the stream is known to be whole. */
export const decoder = (account: ProviderAccount, newId: NewId): ChatDecoder => {
  const calls = ToolCalls.make(newId)
  let reason: string | undefined
  let usage: Usage | undefined
  let written = false
  let refused = false
  let heard = false

  const broken = (what: string) => malformed(account, 200, what)
  // A body has no headers of its own, hence no Retry-After that would need the time.
  const failed = (error: unknown) => refusal(account, { status: 200, headers: {}, body: JSON.stringify(error) }, 0)

  const finish = (out: Array<ChatEvent>): ProviderFailure | undefined => {
    if (!calls.close(out)) return broken("a tool call without a name")
    out.push({ type: "finish", reason: finishOf(reason, { calls: calls.some, refusal: refused }) })
    if (usage !== undefined) out.push({ type: "usage", usage })
    return undefined
  }

  const delta = (said: Record<string, unknown>, out: Array<ChatEvent>) => {
    const reasoning = reasoningOf(said)
    if (reasoning !== "") out.push({ type: "reasoning", text: reasoning })
    const text = textOf(said.content)
    const refusalText = written ? "" : textOf(said.refusal)
    if (text !== "") {
      written = true
      out.push({ type: "content", text })
    } else if (refusalText !== "") {
      refused = true
      out.push({ type: "content", text: refusalText })
    }
    if (Array.isArray(said.tool_calls)) for (const fragment of said.tool_calls) calls.take(fragment, out)
  }

  const choice = (of: Record<string, unknown>, out: Array<ChatEvent>): ProviderFailure | undefined => {
    if (isBreak(of.finish_reason)) return broken(`finish_reason ${String(of.finish_reason)}`)
    if (Predicate.isRecord(of.delta)) delta(of.delta, out)
    if (typeof of.finish_reason === "string" && of.finish_reason !== "") reason = of.finish_reason
    return undefined
  }

  const chunk: ChatDecoder["take"] = ({ data, event }, out) => {
    if (data.trim() === "[DONE]") {
      return reason === undefined ? broken("[DONE] without a finish_reason") : (finish(out) ?? "whole")
    }
    const said = parse(data)
    if (!Predicate.isRecord(said)) return broken("an event that is no chunk")
    const error = event === "error" ? said : errorIn(said)
    if (error !== undefined) return failed(error)
    const first: unknown = Array.isArray(said.choices) ? said.choices[0] : undefined
    usage = usageOf(said.usage) ?? usage
    if (!Predicate.isRecord(first)) return undefined
    usage = usageOf(first.usage) ?? usage
    return choice(first, out)
  }

  return {
    take: (event, out) => {
      const outcome = chunk(event, out)
      // From the provider's first event on its work is paid for, so even one without output is told.
      if (!heard && outcome === undefined && out.length === 0) out.push({ type: "content", text: "" })
      heard = true
      return outcome
    },
    close: (out, cause) => {
      if (reason !== undefined) return finish(out)
      return cause ?? new ProviderFailure({ class: "network", status: 200, detail: "stream ended early" })
    },
    overflow: () => broken("an event is too large"),
    used: () => usage
  }
}
