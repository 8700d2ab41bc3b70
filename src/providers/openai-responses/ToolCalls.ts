import type { ChatEvent } from "../../domain/Chat.ts"
import { asText, type Fields } from "../client/Json.ts"
import { decodeCall } from "./Response.ts"

interface Call {
  readonly index: number
  isEmpty: boolean
}

/** Pieces of a call name its item or, with hosts whose item ids change, its output position. */
export const make = (newId: () => string) => {
  const calls: Array<Call> = []
  const byCallId = new Map<unknown, Call>()
  const byItem = new Map<unknown, Call>()
  const byPosition = new Map<unknown, Call>()

  const find = (item: unknown, position: unknown): Call | undefined => byItem.get(item) ?? byPosition.get(position)

  const push = (call: Call, text: string, out: Array<ChatEvent>) => {
    if (text === "") return
    call.isEmpty = false
    out.push({ type: "tool_call", index: call.index, arguments: text })
  }

  return {
    get some(): boolean {
      return calls.length > 0
    },

    /** A call's item begins, or is there as a whole; false where it has no name. */
    item: (event: Fields, item: Fields, out: Array<ChatEvent>): boolean => {
      const named = asText(item.call_id) !== ""
      const known = named ? byCallId.get(item.call_id) : find(item.id, event.output_index)
      if (known !== undefined) {
        if (known.isEmpty) push(known, asText(item.arguments), out)
        return true
      }
      const opened = decodeCall(item, newId)
      if (opened === undefined) return false
      const { arguments: text, name } = opened.function
      const call: Call = { index: calls.length, isEmpty: text === "" }
      calls.push(call)
      if (named) byCallId.set(item.call_id, call)
      if (typeof item.id === "string") byItem.set(item.id, call)
      if (typeof event.output_index === "number") byPosition.set(event.output_index, call)
      out.push({ type: "tool_call", index: call.index, id: opened.id, name, arguments: text })
      return true
    },

    piece: (event: Fields, out: Array<ChatEvent>): boolean => {
      const call = find(event.item_id, event.output_index)
      if (call !== undefined) push(call, asText(event.delta), out)
      return call !== undefined
    },

    whole: (event: Fields, out: Array<ChatEvent>): void => {
      const call = find(event.item_id, event.output_index)
      if (call?.isEmpty === true) push(call, asText(event.arguments), out)
    },

    close: (out: Array<ChatEvent>): void => {
      for (const call of calls) if (call.isEmpty) push(call, "{}", out)
    }
  }
}
