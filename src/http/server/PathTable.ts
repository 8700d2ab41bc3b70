import type { IncomingMessage } from "node:http"
import { Array as Arr } from "effect"
import { Api, ResourceApi, SiteApi } from "../Api.ts"
import { AdminApi } from "../admin/AdminApi.ts"
import type { Endpoint, EndpointBase } from "../admission/Admission.ts"
import { encodeMessagesError, isOfMessages, messagesIdHeader } from "../messages/MessagesAnswer.ts"
import { apiPrefix, type DeclaredApi, endpointsOf } from "../schema/Endpoints.ts"
import { Authenticated } from "../schema/Headers.ts"

const origin = /^https?:\/\/[^/?#]*/i

const rawPathOf = (target: string): string =>
  target
    .replace(origin, "")
    .replace(/[?#;].*$/s, "")
    .replace(/\/{2,}/g, "/")

const decode = (path: string): string | undefined => {
  try {
    return decodeURI(path)
  } catch {
    return undefined
  }
}

/** Returns the decoded path without a trailing slash. A path with an invalid escape stays as it is. */
export const pathOf = (target: string): string => {
  const path = rawPathOf(target)
  return (path.includes("%") ? (decode(path) ?? path) : path).replace(/(?<=.)\/$/, "")
}

/** Returns whether the path has an invalid escape, so the platform's router finds no endpoint. */
export const hasInvalidEscape = (target: string): boolean =>
  target.includes("%") && decode(rawPathOf(target)) === undefined

interface Row {
  readonly group: string
  readonly method: string
  /** The path, with parameters written `:id` or `*`. */
  readonly path: string
  readonly pattern: RegExp
  readonly needsKey: boolean
}

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/]+").replace("*", ".*")}$`, "s")

const rowsOf = (api: DeclaredApi): ReadonlyArray<Row> =>
  endpointsOf(api).map(({ group, method, middlewares, path }) => ({
    group,
    method,
    path,
    pattern: patternOf(path),
    needsKey: [...middlewares].some(({ key }) => key === Authenticated.key)
  }))

/** The surfaces of groups in metrics and logs, if they differ from the group's name. */
const surfaces: Readonly<Record<string, string>> = {
  docs: "system",
  console: "system",
  stripe: "payments",
  videos: "videos_read"
}

const siteRows = rowsOf(SiteApi)

/** The endpoints that the platform's router serves. */
const servedRows = [
  ...[...siteRows, ...rowsOf(ResourceApi)].map((row) => ({ ...row, surface: surfaces[row.group] ?? row.group })),
  ...rowsOf(AdminApi).map((row) => ({ ...row, surface: "admin" }))
]

const isVersioned = ({ path }: Row): boolean => path.startsWith(`${apiPrefix}/`)

export interface PublishedPath {
  /** The path, with parameters written `{id}`. */
  readonly template: string
  readonly pattern: RegExp
  readonly methods: ReadonlyArray<string>
}

/** The paths of the customers' API, which hints may reveal to everyone. */
export const publishedPaths: ReadonlyArray<PublishedPath> = Object.values(
  Arr.groupBy([...siteRows, ...rowsOf(Api)].filter(isVersioned), ({ path }) => path)
).map((rows) => ({
  template: rows[0].path.replaceAll(/:(\w+)/g, "{$1}"),
  pattern: rows[0].pattern,
  methods: rows.map(({ method }) => method)
}))

const rootOf = (path: string): string => path.split("/", 2).join("/")

/** First path segments outside `/v1`. Hints must not reveal them, because some are only for operators. */
const outsideRoots = new Set(servedRows.filter((row) => !isVersioned(row)).map(({ path }) => rootOf(path)))

export const isOutsideApi = (path: string): boolean => outsideRoots.has(rootOf(path))

/** Returns whether an endpoint accepts the method. HEAD counts as GET, except in the customers' API. */
const hasMethod = (row: Row, method: string): boolean =>
  row.method === method || (method === "HEAD" && row.method === "GET" && !isVersioned(row))

export interface ServedPath extends EndpointBase {
  /** Whether an endpoint has both this path and this method. */
  readonly isServed: boolean
  readonly needsKey: boolean
  readonly isProbe: boolean
  /** Whether the endpoint exists only if payments are configured. */
  readonly requiresPayments: boolean
}

const paymentGroups = new Set(["stripe", "payments"])

const messagesErrors = { idHeader: messagesIdHeader, encodeError: encodeMessagesError }

/** Finds an endpoint that does not generate. A request with a wrong method is still reported with its path. */
export const findServed = ({
  headers,
  method = "",
  url = ""
}: Pick<IncomingMessage, "headers" | "method" | "url">): ServedPath => {
  const path = pathOf(url)
  const rows = servedRows.filter(({ pattern }) => pattern.test(path))
  const [first] = rows
  const row = hasInvalidEscape(url) ? undefined : rows.find((one) => hasMethod(one, method))
  return {
    surface: first?.surface ?? "none",
    path: first?.path,
    isServed: row !== undefined,
    needsKey: row?.needsKey ?? false,
    isProbe: first?.group === "system",
    requiresPayments: paymentGroups.has(first?.group ?? ""),
    ...(isOfMessages(path, headers) ? messagesErrors : undefined)
  }
}

/** Returns a function that finds generating endpoints. It tries the exact path first, because nearly all clients send it. */
export const makeGeneratingTable = (endpoints: ReadonlyArray<Endpoint>) => {
  const byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]))
  return (method: string | undefined, target: string): Endpoint | undefined =>
    method === "POST" ? (byPath.get(target) ?? byPath.get(pathOf(target))) : undefined
}
