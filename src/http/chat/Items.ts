import type { Message } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { isAbsent, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { refuse } from "../body/Refusals.ts"
import { flatNames } from "./ClientTools.ts"
import { readInput } from "./InputItems.ts"
import { isRefusal, type Result } from "./Result.ts"

const formatOf = (text: unknown): unknown => {
  const format = isObject(text) ? text.format : undefined
  if (!isObject(format) || format.type !== "json_schema") return format
  const { type, ...json_schema } = format
  return { type, json_schema }
}

const effortOf = (reasoning: unknown): unknown => {
  const effort = isObject(reasoning) ? reasoning.effort : undefined
  return effort === "max" ? "xhigh" : effort
}

/** The fields of Responses that chat completions have under other names. */
export const toChatFields = (json: JsonObject): JsonObject => {
  const { max_output_tokens, reasoning, text } = json
  const [effort, format] = [effortOf(reasoning), formatOf(text)]
  return keepSource(json, {
    ...(isAbsent(max_output_tokens) ? undefined : { max_completion_tokens: max_output_tokens }),
    ...(isAbsent(effort) ? undefined : { reasoning_effort: effort }),
    ...(isAbsent(format) ? undefined : { response_format: format }),
    ...json
  })
}

/** The messages of a body with `input`. It is translated for every route. */
export const readItems = ({ input, instructions }: JsonObject): Result<ReadonlyArray<Message>> => {
  const read = readInput(isString(instructions) ? instructions : undefined, input, flatNames)
  if (isRefusal(read)) return read
  return read.only === undefined ? read.messages : refuse("input", `${read.only.what} is not supported here.`)
}
