export type Query = Readonly<Record<string, string>>

/** A view and its filters, from the hash of the address. */
export interface Route {
  readonly path: ReadonlyArray<string>
  readonly query: Query
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The page Routes became a part of the page Models, and old links still name it. */
const toCurrentPath = (path: string): string => (path === "/routes" ? "/models" : path)

export const parseHash = (hash: string): Route => {
  const [rawPath = "", query = ""] = hash.replace(/^#/, "").split("?", 2)
  const path = toCurrentPath(rawPath)
  return {
    path: path
      .split("/")
      .filter((part) => part !== "")
      .map(decode),
    query: Object.fromEntries(new URLSearchParams(query))
  }
}

/** Omits values that are undefined, null or empty. */
export const searchOf = (query: Readonly<Record<string, string | number | boolean | null | undefined>>): string => {
  const entries = Object.entries(query).flatMap(
    ([name, value]): ReadonlyArray<[string, string]> =>
      value === undefined || value === null || value === "" ? [] : [[name, String(value)]]
  )
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries)}`
}

/** `link(["requests"], { status: "5xx" })` is `#/requests?status=5xx`. */
export const link = (path: ReadonlyArray<string>, query: Parameters<typeof searchOf>[0] = {}): string =>
  `#/${path.map(encodeURIComponent).join("/")}${searchOf(query)}`

export const withQuery = ({ path, query }: Route, changes: Parameters<typeof searchOf>[0]): string =>
  link(path, { ...query, ...changes })
