export type YamlValue =
  | string
  | number
  | boolean
  | bigint
  | ReadonlyArray<YamlValue>
  | { readonly [key: string]: YamlValue | undefined }

const plain = /^[A-Za-z][\w./-]*$/
const reserved = /^(?:true|false|null|yes|no|on|off|y|n)$/i
const unprintable = /[^\x20-\x7e]/g

const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`

const scalar = (text: string): string =>
  plain.test(text) && !reserved.test(text) ? text : JSON.stringify(text).replace(unprintable, escapeUnit)

/** One line; bigints are in nano-USD. */
export const toYaml = (value: YamlValue, toText: (nano: bigint) => string): string => {
  if (typeof value === "string") return scalar(value)
  if (typeof value === "bigint") return toText(value)
  if (typeof value !== "object") return String(value)
  if (isList(value)) return `[${value.map((item) => toYaml(item, toText)).join(", ")}]`
  const pairs = Object.entries(value).flatMap(([key, item]) =>
    item === undefined ? [] : [`${scalar(key)}: ${toYaml(item, toText)}`]
  )
  return `{${pairs.join(", ")}}`
}

const isList = (value: object): value is ReadonlyArray<YamlValue> => Array.isArray(value)

/** For a comment or a message: what is not plain ASCII is escaped, what is long cut off. */
export const toLine = (text: string): string => {
  const line = text.length > 120 ? `${text.slice(0, 120)}…` : text
  return /^[\x20-\x7e]*\u2026?$/.test(line) ? line : JSON.stringify(line).replace(unprintable, escapeUnit)
}
