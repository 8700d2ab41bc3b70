import { Predicate } from "effect"
import type { ChatEvent } from "../../domain/Chat.ts"
import { asFields, asText } from "../client/Json.ts"
import { argumentsOf } from "./Response.ts"

interface Call {
  readonly index: number
  /** The host's own id, by which fragments without an index find their call. */
  readonly hostId: string | undefined
  opened: boolean
  early: string
  empty: boolean
}

/** Hosts count calls from 0, repeat one index, or send none: a fragment with a name and a new id opens a call. */
export const make = (newId: () => string) => {
  const calls: Array<Call> = []
  const byHostIndex = new Map<number, Call>()
  const byHostId = new Map<string, Call>()

  const find = (index: unknown, id: string | undefined, named: boolean): Call | undefined => {
    if (id !== undefined) {
      const known = byHostId.get(id)
      if (known !== undefined) return known
      return !named && typeof index === "number" ? byHostIndex.get(index) : undefined
    }
    if (typeof index === "number") return byHostIndex.get(index)
    return named ? undefined : calls.at(-1)
  }

  const begin = (index: unknown, hostId: string | undefined): Call => {
    const call: Call = { index: calls.length, hostId, opened: false, early: "", empty: true }
    calls.push(call)
    if (typeof index === "number") byHostIndex.set(index, call)
    if (hostId !== undefined) byHostId.set(hostId, call)
    return call
  }

  return {
    get some(): boolean {
      return calls.length > 0
    },

    take: (fragment: unknown, out: Array<ChatEvent>): void => {
      if (!Predicate.isRecord(fragment)) return
      const part = asFields(fragment.function)
      const id = asText(fragment.id) || undefined
      const name = asText(part.name) || undefined
      const call = find(fragment.index, id, name !== undefined) ?? begin(fragment.index, id)
      const text = argumentsOf(part.arguments)
      if (text !== "") call.empty = false
      if (call.opened) {
        if (text !== "") out.push({ type: "tool_call", index: call.index, arguments: text })
      } else if (name === undefined) {
        call.early += text
      } else {
        call.opened = true
        const opening = call.early + text
        out.push({ type: "tool_call", index: call.index, id: call.hostId ?? newId(), name, arguments: opening })
      }
    },

    /** Appends what makes every call whole; false when one never had a name. */
    close: (out: Array<ChatEvent>): boolean => {
      for (const call of calls) {
        if (!call.opened) return false
        if (call.empty) out.push({ type: "tool_call", index: call.index, arguments: "{}" })
      }
      return true
    }
  }
}
