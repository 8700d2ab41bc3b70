import { FastCheck as fc } from "effect"

/** A piece of JSON text; text, since objects can say neither a field twice nor a number that is too large. */
export type Json = string

const numbers = [
  "0",
  "-0",
  "-1",
  "1.5",
  "1e308",
  "-1e308",
  "1e999",
  "9007199254740993",
  "1e-400",
  "00",
  "+1",
  "0x10",
  "NaN"
]
const strings = [
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud800"',
  '"\\udfff\\ud800"',
  '"\\u202e\\u200b\\ufeff"',
  '"__proto__"',
  '"../../etc/passwd"',
  '"\u{1f600}\u{1f468}\u200d\u{1f469}"',
  '"\\q"',
  '"http://169.254.169.254/latest"',
  '"data:image/png;base64,AAAA"',
  '"data:,"',
  '"file:///etc/passwd"',
  '"(a+)+$"',
  '"^(?:a{1,40}){1,40}b$"',
  "'single'",
  '"\u0001"'
]
const structures = [
  "{}",
  "[]",
  "[[]]",
  "[null]",
  '{"__proto__":{"admin":true}}',
  '{"constructor":{"prototype":{}}}',
  '{"toString":1,"valueOf":2}',
  '{"then":1}',
  '{"$ref":"#"}',
  '{"type":"array","minItems":5000,"items":{"$ref":"#"}}',
  '{"type":"string","minLength":5000000,"pattern":"^(a|aa)+$"}',
  '{"type":"object","patternProperties":{"^(a+)+$":{}},"minProperties":500}',
  '{"a":1,"a":2}',
  '{"":""}',
  "[1,]",
  "{a:1}",
  "/**/1"
]

const nested = fc
  .tuple(fc.constantFrom<readonly [string, string]>(["[", "]"], ['{"a":', "}"]), fc.constantFrom(5, 50, 500, 5_000))
  .map(([[open, close], depth]) => `${open.repeat(depth)}1${close.repeat(depth)}`)

const long = fc
  .tuple(fc.constantFrom("a", "\u00e9", "\u{1f600}", "\\u0000", "\\\\"), fc.constantFrom(300, 5_000, 100_000))
  .map(([unit, times]) => `"${unit.repeat(times)}"`)

const many = fc
  .tuple(
    fc.constantFrom("{}", "0", '""', "null", '{"type":"text","text":"a"}', '{"role":"user","content":"a"}'),
    fc.constantFrom(10, 500, 5_000)
  )
  .map(([item, times]) => `[${Array.from({ length: times }, () => item).join(",")}]`)

/** Anything that may stand where a field's value should. */
export const odd: fc.Arbitrary<Json> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("null", "true", "false", ...numbers) },
  { weight: 3, arbitrary: fc.constantFrom(...strings) },
  { weight: 2, arbitrary: fc.constantFrom(...structures) },
  { weight: 3, arbitrary: fc.json({ maxDepth: 3 }) },
  { weight: 2, arbitrary: fc.fullUnicodeString({ maxLength: 40 }).map((text) => JSON.stringify(text)) },
  { weight: 1, arbitrary: fc.bigInt().map(String) },
  { weight: 1, arbitrary: nested },
  { weight: 1, arbitrary: long },
  { weight: 1, arbitrary: many }
)

/** A value in its place, so that exactly that place can be written otherwise. */
type Path = ReadonlyArray<string | number>

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const pathsIn = (value: unknown, at: Path = []): ReadonlyArray<Path> => {
  const inner = Array.isArray(value)
    ? value.flatMap((item: unknown, index) => pathsIn(item, [...at, index]))
    : isObject(value)
      ? Object.entries(value).flatMap(([name, item]) => pathsIn(item, [...at, name]))
      : []
  return [at, ...inner]
}

/** How one place is written: in another way, twice, or not at all. */
type Change =
  | { readonly kind: "replace" | "repeat" | "beside"; readonly json: Json; readonly name: string }
  | { readonly kind: "drop" }

const write = (value: unknown, at: Path, change: Change): Json | undefined => {
  const [head, ...rest] = at
  if (head === undefined) {
    if (change.kind === "drop") return undefined
    return change.kind === "replace" ? change.json : JSON.stringify(value)
  }
  const child = (name: string | number, item: unknown) =>
    name === head ? write(item, rest, change) : JSON.stringify(item)
  if (Array.isArray(value)) {
    return `[${value
      .map((item: unknown, index) => child(index, item))
      .filter((text) => text !== undefined)
      .join(",")}]`
  }
  if (!isObject(value)) return JSON.stringify(value)
  const fields = Object.entries(value).flatMap(([name, item]) => {
    const text = child(name, item)
    if (text === undefined) return []
    const field = `${JSON.stringify(name)}:${text}`
    if (name !== head || rest.length > 0 || change.kind === "drop" || change.kind === "replace") return [field]
    return [field, `${JSON.stringify(change.kind === "repeat" ? name : change.name)}:${change.json}`]
  })
  return `{${fields.join(",")}}`
}

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom<"replace" | "repeat" | "beside">("replace", "replace", "replace", "repeat", "beside"),
      json: odd,
      name: fc.constantFrom(
        "extra",
        "pattern",
        "$ref",
        "allOf",
        "minItems",
        "__proto__",
        "n",
        "user",
        "functions",
        "mask",
        "duration",
        "input_reference",
        "quality",
        "size"
      )
    })
  },
  { weight: 1, arbitrary: fc.constant<Change>({ kind: "drop" }) }
)

/** A body with one or two of its places written otherwise; what is no JSON any more after the first stays so. */
export const mutated = (body: unknown): fc.Arbitrary<Json> => {
  const paths = pathsIn(body)
  const one = (value: unknown) =>
    fc.tuple(fc.constantFrom(...paths), change).map(([at, how]) => write(value, at, how) ?? "")
  const reparsed = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  }
  return one(body).chain((text) =>
    fc.boolean().chain((again) => {
      const value = again && text.length < 2_000 ? reparsed(text) : undefined
      return value === undefined ? fc.constant(text) : one(value)
    })
  )
}
