import type { IncomingMessage } from "node:http"
import { Array as Arr } from "effect"
import { Api, ResourceApi, SiteApi } from "../Api.ts"
import { AdminApi } from "../admin/AdminApi.ts"
import type { Endpoint, EndpointBase } from "../admission/Admission.ts"
import { encodeMessagesError, isOfMessages, messagesIdHeader } from "../messages/MessagesErrors.ts"
import { apiPrefix, type DeclaredApi, endpointsOf } from "../schema/Endpoints.ts"
import { Authenticated } from "../schema/Headers.ts"
import { isMisspelt, pathOf } from "./RequestPath.ts"

interface Row {
  readonly group: string
  readonly method: string
  /** Parameters are written `:id` or `*`. */
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

/** Where reports have another name than the group. */
const surfaces: Readonly<Record<string, string>> = {
  docs: "system",
  console: "system",
  stripe: "payments",
  videos: "videos_read"
}

const site = rowsOf(SiteApi)

/** What the platform's router serves. */
const served = [
  ...[...site, ...rowsOf(ResourceApi)].map((row) => ({ ...row, surface: surfaces[row.group] ?? row.group })),
  ...rowsOf(AdminApi).map((row) => ({ ...row, surface: "admin" }))
]

const isVersioned = ({ path }: Row): boolean => path.startsWith(`${apiPrefix}/`)

export interface PublishedPath {
  /** Parameters are written `{id}`. */
  readonly shown: string
  readonly pattern: RegExp
  readonly methods: ReadonlyArray<string>
}

/** What everyone may know of. */
export const publishedPaths: ReadonlyArray<PublishedPath> = Object.values(
  Arr.groupBy([...site, ...rowsOf(Api)].filter(isVersioned), ({ path }) => path)
).map((rows) => ({
  shown: rows[0].path.replaceAll(/:(\w+)/g, "{$1}"),
  pattern: rows[0].pattern,
  methods: rows.map(({ method }) => method)
}))

const rootOf = (path: string): string => path.split("/", 2).join("/")

/** Where other things than the API are, of which some show themselves to operators alone. */
const otherRoots = new Set(served.filter((row) => !isVersioned(row)).map(({ path }) => rootOf(path)))

export const isBesideApi = (path: string): boolean => otherRoots.has(rootOf(path))

/** HEAD is answered as GET, but not by the API of customers. */
const hasMethod = (row: Row, method: string): boolean =>
  row.method === method || (method === "HEAD" && row.method === "GET" && !isVersioned(row))

export interface ServedPath extends EndpointBase {
  /** Whether there is an endpoint for the method too. */
  readonly isServed: boolean
  readonly needsKey: boolean
  readonly isForMachines: boolean
  /** There only where payments are set up. */
  readonly isOfPayments: boolean
}

const ofPayments = new Set(["stripe", "payments"])

const ofMessages = { idHeader: messagesIdHeader, encodeError: encodeMessagesError }

/** What does not generate. A request with another method is counted as one for the path. */
export const findServed = ({
  headers,
  method = "",
  url = ""
}: Pick<IncomingMessage, "headers" | "method" | "url">): ServedPath => {
  const path = pathOf(url)
  const rows = served.filter(({ pattern }) => pattern.test(path))
  const [first] = rows
  const row = isMisspelt(url) ? undefined : rows.find((one) => hasMethod(one, method))
  return {
    surface: first?.surface ?? "none",
    path: first?.path,
    isServed: row !== undefined,
    needsKey: row?.needsKey ?? false,
    isForMachines: first?.group === "system",
    isOfPayments: ofPayments.has(first?.group ?? ""),
    ...(isOfMessages(path, headers) ? ofMessages : undefined)
  }
}

/** What generates; nearly all clients spell its path as it is. */
export const makeGeneratingTable = (endpoints: ReadonlyArray<Endpoint>) => {
  const byPath = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]))
  return (method: string | undefined, target: string): Endpoint | undefined =>
    method === "POST" ? (byPath.get(target) ?? byPath.get(pathOf(target))) : undefined
}
