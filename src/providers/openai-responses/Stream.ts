import { Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { type ChatDecoder, eventsOf } from "../chat/ChatStream.ts"
import { malformed, parse, refusal } from "../client/Classification.ts"
import { answerOf, errorIn, type Fields, finishOf, isOver, type NewId, paragraph, textOf, usageOf } from "./Answer.ts"
import * as Calls from "./Calls.ts"

export interface ResponsesDecoder extends ChatDecoder {
  /** Whether something was used so far that the stream does not show, such as reasoning or a search. */
  readonly hidden: boolean
}

type Outcome = ReturnType<ChatDecoder["take"]>

/** Reads the events of a response. What it does not know is no output: searches, annotations, parts, obfuscation. */
export const decoder = (account: ProviderAccount, newId: NewId): ResponsesDecoder => {
  const calls = Calls.make(newId)
  let hidden = false
  let heard = false
  let written = false
  let refused = false
  let reasoning: string | undefined
  let usage: Usage | undefined

  const broken = (what: string) => malformed(account, 200, what)
  // A body has no headers of its own, hence no Retry-After that would need the time.
  const failed = (error: unknown) => refusal(account, { status: 200, headers: {}, body: JSON.stringify(error) }, 0)

  const content = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
    return text !== ""
  }

  const reason = (event: Fields, out: Array<ChatEvent>) => {
    hidden = true
    const text = textOf(event.delta)
    if (text === "") return
    const part = [event.output_index, event.summary_index, event.content_index].join(" ")
    const apart = reasoning !== undefined && reasoning !== part
    reasoning = part
    out.push({ type: "reasoning", text: apart ? paragraph + text : text })
  }

  const item = (event: Fields, out: Array<ChatEvent>): Outcome => {
    const of = Predicate.isRecord(event.item) ? event.item : {}
    if (of.type === "function_call") {
      return calls.item(event, of, out) ? undefined : broken("a function call without a name")
    }
    if (of.type !== "message") hidden = true
    return undefined
  }

  const end = (event: Fields, out: Array<ChatEvent>): Outcome => {
    const response = Predicate.isRecord(event.response) ? event.response : {}
    usage = usageOf(response.usage)
    if (event.type === "response.failed") return failed(errorIn(response) ?? {})
    const error = errorIn(response)
    if (error !== undefined) return failed(error)
    if (!isOver(response)) return broken(`a response that ended ${textOf(response.status)}`)
    if (!written && !refused && !calls.some && Array.isArray(response.output)) {
      const whole = answerOf(response, newId)
      if (typeof whole === "string") return broken(whole)
      out.push(...eventsOf(reasoning === undefined ? whole : { ...whole, reasoning: undefined }))
      return "whole"
    }
    calls.close(out)
    const status = event.type === "response.incomplete" ? "incomplete" : response.status
    out.push({
      type: "finish",
      reason: finishOf({ ...response, status }, { calls: calls.some, refusal: refused && !written })
    })
    if (usage !== undefined) out.push({ type: "usage", usage })
    return "whole"
  }

  const take = (event: Fields, out: Array<ChatEvent>): Outcome => {
    switch (event.type) {
      case "response.output_text.delta":
        written = content(textOf(event.delta), out) || written
        return undefined
      case "response.refusal.delta":
        refused = (!written && content(textOf(event.delta), out)) || refused
        return undefined
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        reason(event, out)
        return undefined
      case "response.output_item.added":
      case "response.output_item.done":
        return item(event, out)
      case "response.function_call_arguments.delta":
        return calls.piece(event, out) ? undefined : broken("arguments of a call that never began")
      case "response.function_call_arguments.done":
        calls.whole(event, out)
        return undefined
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end(event, out)
      case "error":
        return failed(event)
      default:
        return undefined
    }
  }

  return {
    get hidden() {
      return hidden
    },
    take: ({ data, event }, out) => {
      const said = parse(data)
      if (!Predicate.isRecord(said)) return broken("an event that is no object")
      const outcome =
        Predicate.isRecord(said.error) && said.type === undefined ? failed(said) : take({ type: event, ...said }, out)
      // From the provider's first event on its work is paid for, so even one without output is told.
      if (!heard && outcome === undefined && out.length === 0) out.push({ type: "content", text: "" })
      heard = true
      return outcome
    },
    close: (_, cause) => cause ?? new ProviderFailure({ class: "network", status: 200, detail: "stream ended early" }),
    overflow: () => broken("an event is too large"),
    used: () => usage
  }
}
