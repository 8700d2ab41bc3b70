import { unsigned } from "../../domain/CallId.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { withWholePairs } from "../../domain/JsonText.ts"
import { CallIds, noResult, type SentCall } from "../chat/CallIds.ts"
import { objectText } from "../chat/Messages.ts"
import { fitName } from "../chat/ToolNames.ts"
import type { WireRules } from "../chat/WireRules.ts"
import { asRecords, asText, type Fields, without } from "../client/Json.ts"

/** The host would look these up by their ids, or demand the reasoning before them. */
const unnamed: ReadonlySet<unknown> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output"
])

/** Without its encrypted content, reasoning is a reference to what is not stored. */
const isReadable = ({ encrypted_content: content }: Fields): boolean =>
  typeof content === "string" && content !== "" && content !== unsigned

const isReference = (item: Fields): boolean =>
  item.type === "item_reference" || ((item.type ?? null) === null && item.role === undefined)

interface InputRules {
  readonly rules: WireRules
  /** Whether the host can read what it has encrypted. */
  readonly encrypted: boolean
  readonly keepTools: (tools: unknown) => ReadonlyArray<Fields>
}

const isOutput = (item: Fields): boolean => asText(item.type).endsWith("_output")

/** A call in terms of the host's rules. */
const encodeCall = (item: Fields, { callArguments, toolName }: WireRules): Fields => {
  const { arguments: given, name, type } = item
  const hasText = type === "function_call" && callArguments === "text"
  return {
    ...(typeof name === "string" && { name: fitName(name, toolName) }),
    ...(hasText && {
      arguments: objectText(typeof given === "string" ? withWholePairs(given) : stringify(given ?? null))
    })
  }
}

/** Results that stand for those which the client never sent, by the type of their call. */
const missingResults: Readonly<Record<string, (call_id: string) => Fields>> = {
  function_call: (call_id) => ({ type: "function_call_output", call_id, output: noResult }),
  custom_tool_call: (call_id) => ({ type: "custom_tool_call_output", call_id, output: noResult }),
  // Codex answers such calls so.
  local_shell_call: (call_id) => ({ type: "function_call_output", call_id, output: noResult }),
  apply_patch_call: (call_id) => ({ type: "apply_patch_call_output", call_id, status: "failed", output: noResult }),
  shell_call: (call_id) => ({
    type: "shell_call_output",
    call_id,
    output: [{ stdout: "", stderr: noResult, outcome: { type: "exit", exit_code: 130 } }]
  })
}

/** Puts a result behind each run of calls for those among them that have none. */
const answerAll = (
  items: ReadonlyArray<Fields>,
  calls: ReadonlyMap<number, SentCall<number>>
): ReadonlyArray<Fields> => {
  const answered: Array<Fields> = []
  let missing: Array<Fields> = []
  for (const [at, item] of items.entries()) {
    const call = calls.get(at)
    if (call === undefined) {
      answered.push(...missing)
      missing = []
    } else if (call.result === undefined) {
      const make = missingResults[asText(item.type)]
      if (make !== undefined) missing.push(make(call.id))
    }
    answered.push(item)
  }
  return [...answered, ...missing]
}

/** The client's own items, with ids, names and arguments that the host takes. */
export const encodeNativeInput = (input: unknown, { encrypted, keepTools, rules }: InputRules): unknown => {
  if (!Array.isArray(input)) return input
  const ids = new CallIds<number>(rules.callId)
  const items: Array<Fields> = []
  const calls = new Map<number, SentCall<number>>()
  let isAnswered = true

  const placeOf = (id: string, at: number): { readonly id: string; readonly at: number } => {
    const call = ids.answer(id)
    if (call === undefined) return { id: ids.fit(id), at }
    call.result ??= at
    return { id: call.id, at: call.result }
  }
  const add = (item: Fields): void => {
    const { call_id: id, tools } = item
    const encoded = {
      ...(unnamed.has(item.type ?? "message") ? without(item, ["id"]) : item),
      ...(tools !== undefined && { tools: keepTools(tools) })
    }
    if (typeof id !== "string") {
      isAnswered ||= item.role !== undefined && item.role !== "assistant"
      items.push(encoded)
    } else if (isOutput(item)) {
      isAnswered = true
      const { at, id: call_id } = placeOf(id, items.length)
      items[at] = { ...encoded, call_id }
    } else {
      if (isAnswered) ids.beginTurn()
      isAnswered = false
      const call = ids.call(id)
      calls.set(items.length, call)
      items.push({ ...encoded, call_id: call.id, ...encodeCall(item, rules) })
    }
  }

  for (const item of asRecords(input)) {
    if (isReference(item) || item.type === "compaction_trigger") continue
    if (item.type === "reasoning" && !(encrypted && isReadable(item))) continue
    add(item)
  }
  return [...calls.values()].some(({ result }) => result === undefined) ? answerAll(items, calls) : items
}
