import { Predicate, Redacted } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { Chunks } from "../../services/media/Chunks.ts"
import type { Span } from "../../services/tracing/Tracing.ts"
import type { LargeJson } from "./Json.ts"

/** A path below the account's base address; redirects are not followed. */
export interface UpstreamRequest {
  readonly account: ProviderAccount
  readonly method?: "GET" | "POST" | "PUT" | undefined
  readonly path: string
  readonly authorization: (secret: string) => Readonly<Record<string, string>>
  /** Lower-case names; the account's own headers win, or join a list. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | Uint8Array | Chunks | LargeJson | undefined
  readonly contentType?: string | undefined
}

export type Body = Exclude<UpstreamRequest["body"], LargeJson>

export const isChunks = (body: Body): body is Chunks =>
  body !== undefined && !Predicate.isString(body) && !Predicate.isUint8Array(body)

export type Sendable = Omit<UpstreamRequest, "body"> & { readonly body: Body }

export const traceHeaders = (account: ProviderAccount, { state, traceparent }: Span): Record<string, string> => {
  if (account.sendsTraceContext !== true) return {}
  return { traceparent, ...(state !== undefined && { tracestate: state }) }
}

/** Headers whose values add up; of any other the account's own wins. */
const lists: ReadonlySet<string> = new Set(["anthropic-beta"])

export const headersOf = (request: Sendable, accept: string): Record<string, string> => {
  const { account } = request
  const headers: Record<string, string> = {
    accept,
    "accept-encoding": "identity",
    "user-agent": "generation-gateway",
    ...request.headers,
    ...(account.credential === undefined ? undefined : request.authorization(Redacted.value(account.credential)))
  }
  if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json"
  if (isChunks(request.body)) headers["content-length"] = String(request.body.length)
  for (const name in account.headers) {
    const [lower, value = ""] = [name.toLowerCase(), account.headers[name]]
    headers[lower] = lists.has(lower) && headers[lower] !== undefined ? `${value},${headers[lower]}` : value
  }
  return headers
}
