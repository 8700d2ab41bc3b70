export type Query = Readonly<Record<string, string>>

/** A view and its filters, as the hash of the address has them. */
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

export const parseHash = (hash: string): Route => {
  const [path = "", query = ""] = hash.replace(/^#/, "").split("?", 2)
  return {
    path: path
      .split("/")
      .filter((part) => part !== "")
      .map(decode),
    query: Object.fromEntries(new URLSearchParams(query))
  }
}

/** Values that are undefined, null or empty are left out. */
export const searchOf = (query: Readonly<Record<string, string | number | boolean | null | undefined>>): string => {
  const given = Object.entries(query).flatMap(
    ([name, value]): ReadonlyArray<[string, string]> =>
      value === undefined || value === null || value === "" ? [] : [[name, String(value)]]
  )
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`
}

/** `link(["requests"], { status: "5xx" })` is `#/requests?status=5xx`. */
export const link = (path: ReadonlyArray<string>, query: Parameters<typeof searchOf>[0] = {}): string =>
  `#/${path.map(encodeURIComponent).join("/")}${searchOf(query)}`

export const withQuery = ({ path, query }: Route, changes: Parameters<typeof searchOf>[0]): string =>
  link(path, { ...query, ...changes })
