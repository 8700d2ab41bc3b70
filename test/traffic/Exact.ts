/** JSON that keeps what `JSON.parse` loses: the digits of numbers and the order of keys. */

/** A JSON text in the place of a value. */
export class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** As `JSON.stringify`, with each `Raw` as its text. */
export const write = (value: unknown): string => {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map((item) => write(item)).join(",")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${write(field)}`).join(",")}}`
}

/** A string, white space, or anything else up to the next of them. */
const token = /"(?:[^"\\]|\\.)*"|\s+|[^\s"]+/g

/** The text without white space between its tokens, and with its strings written in one way. */
export const compact = (json: string): string =>
  json.replace(token, (part) => {
    if (part.startsWith('"')) return JSON.stringify(JSON.parse(part))
    return part.trim()
  })

/** The text of each value in a JSON text, by its path: `choices.0.message`. */
export const textsIn = (json: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>()
  let at = 0
  const skip = () => {
    while (/\s/.test(json[at] ?? "")) at++
  }
  const literal = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const [text] = pattern.exec(json) ?? []
    if (text === undefined) throw new SyntaxError(`no JSON at ${at}: ${json.slice(at, at + 40)}`)
    at += text.length
    return text
  }
  const items = (end: string, item: (index: number) => void) => {
    at++
    skip()
    for (let index = 0; json[at] !== end; index++) {
      item(index)
      skip()
      if (json[at] === ",") at++
      else if (json[at] !== end) throw new SyntaxError(`no ${end} at ${at}`)
      skip()
    }
    at++
  }
  const value = (path: string) => {
    skip()
    const start = at
    const below = (key: string | number) => (path === "" ? String(key) : `${path}.${key}`)
    if (json[at] === "{") {
      items("}", () => {
        const key: unknown = JSON.parse(literal(/"(?:[^"\\]|\\.)*"/y))
        skip()
        at++
        value(below(String(key)))
      })
    } else if (json[at] === "[") items("]", (index) => value(below(index)))
    else literal(/"(?:[^"\\]|\\.)*"|[^\s,\]}]+/y)
    found.set(path, json.slice(start, at))
  }
  value("")
  return found
}
