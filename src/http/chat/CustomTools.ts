import { Option, Schema } from "effect"
import { isObject, isString, type JsonObject } from "../body/Guards.ts"

/** The one argument of the function that stands for a custom tool. */
const customArgument = "input"

export const customParameters = {
  type: "object",
  properties: { [customArgument]: { type: "string", description: "The whole input, as plain text." } },
  required: [customArgument],
  additionalProperties: false
}

/** The arguments of that function. */
export const customArguments = (input: string): string => JSON.stringify({ [customArgument]: input })

/** Responses has the grammar's fields in the format, chat completions in an object of it. */
const grammarOf = (format: unknown): string => {
  if (!isObject(format)) return ""
  const { definition, syntax } = isObject(format.grammar) ? format.grammar : format
  return isString(definition) ? `\n\nThe input must conform to this ${String(syntax)} grammar:\n${definition}` : ""
}

export const customDescription = ({ description, format }: JsonObject): string =>
  ((isString(description) ? description : "") + grammarOf(format)).trim()

const readString = Schema.decodeUnknownOption(Schema.parseJson(Schema.String))

const readArguments = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
)

const openInput = new RegExp(String.raw`^\s*\{\s*"${customArgument}"\s*:\s*"`)
/** Characters of an escape that lacks its last one. */
const longestCutEscape = 5

/** The input in arguments that end within it; undefined for any other text. */
const cutInput = (text: string): string | undefined => {
  const [opening] = openInput.exec(text) ?? []
  if (opening === undefined) return undefined
  for (let cut = 0; cut <= longestCutEscape; cut++) {
    const given = Option.getOrUndefined(readString(`"${text.slice(opening.length, text.length - cut)}"`))
    if (given !== undefined) return given
  }
  return undefined
}

/** The input of a custom tool; some models wrap their text under another name. */
export const customInput = (text: string): string => {
  const given = Option.getOrElse(readArguments(text), (): JsonObject => ({}))
  const input = given[customArgument] ?? (Object.keys(given).length === 1 ? Object.values(given)[0] : undefined)
  return isString(input) ? input : (cutInput(text) ?? text)
}
