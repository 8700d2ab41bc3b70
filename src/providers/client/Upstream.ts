import { Readable } from "node:stream"
import { Context, Effect, Layer, Predicate, Redacted, type Scope } from "effect"
import { Agent, errors } from "undici"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type CurrentAttempt, currentAttempt } from "../../services/routing/CurrentAttempt.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import type { Chunks } from "../../services/runtime/Chunks.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import type { Span } from "../../services/telemetry/Tracing.ts"
import {
  GatheredExchange,
  type Received,
  StreamedExchange,
  type Taken,
  type UpstreamHead,
  type UpstreamHeaders,
  type UpstreamResponse
} from "./Exchange.ts"
import { encodeJson, LargeJson } from "./Json.ts"
import { requestIdIn } from "./RequestId.ts"

const answerLimitBytes = 64 * 1024 * 1024
const detailLimit = 1_000
const detailSource = 65_536

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

export const bearer: UpstreamRequest["authorization"] = (secret) => ({ authorization: `Bearer ${secret}` })

export interface UpstreamStream extends UpstreamHead {
  /** Hands over new bytes or the end; returns a canceller. */
  readonly next: (done: (taken: Taken) => void) => () => void
  /** The scope then lets the body end instead of breaking the connection. */
  readonly finish: () => void
}

/** Bounded, on one line, without the account's credential. */
export const loggable = (account: ProviderAccount, text: string): string => {
  const secret = account.credential === undefined ? "" : Redacted.value(account.credential)
  const source = text.slice(0, detailSource)
  const clean = secret === "" ? source : source.replaceAll(secret, "[credential]")
  return clean.slice(0, detailLimit).replaceAll(/\s+/g, " ").trim()
}

const codeOf = (error: Error): string => ("code" in error && typeof error.code === "string" ? error.code : "")

/** The codes of a slow connect and a silent body. */
const deadlines: ReadonlySet<string> = new Set(["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_BODY_TIMEOUT"])

/** What a host sent, or was to be sent. */
const malformed: ReadonlySet<string> = new Set([
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"
])
const isMalformed = (error: Error): boolean => error instanceof errors.HTTPParserError || malformed.has(codeOf(error))

/** A host that refuses a body of more may close the connection before all is sent, and its answer is lost. */
const soonSent = 64 * 1024

const tooLarge = (status: Received) =>
  new ProviderFailure({ class: "retry", status, detail: `the answer is larger than ${answerLimitBytes} bytes` })

type Body = Exclude<UpstreamRequest["body"], LargeJson>

const isChunks = (body: Body): body is Chunks =>
  body !== undefined && !Predicate.isString(body) && !Predicate.isUint8Array(body)

const toDispatchBody = (body: Body): string | Uint8Array | Readable | null =>
  isChunks(body) ? Readable.from(body, { objectMode: false }) : (body ?? null)

type OnReceived = (headers: UpstreamHeaders) => void

type Sendable = Omit<UpstreamRequest, "body"> & { readonly body: Body }

const toFailure =
  ({ account, body }: Sendable) =>
  (error: Error, received: Received, unsent: boolean): ProviderFailure => {
    const isLarge = (body?.length ?? 0) > soonSent
    const text = error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message
    return new ProviderFailure({
      class: deadlines.has(codeOf(error)) ? "timeout" : "network",
      status: received,
      unsent,
      ofRequest: isMalformed(error) || (isLarge && !unsent),
      detail: loggable(account, `${codeOf(error)} ${text}`)
    })
  }

const encodeBody = <A, E, R>(
  { body, ...request }: UpstreamRequest,
  send: (request: Sendable) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  body instanceof LargeJson
    ? Effect.flatMap(EventLoop.runInSlices(encodeJson(body)), (pieces) => send({ ...request, body: pieces }))
    : send({ ...request, body })

const traceHeaders = (account: ProviderAccount, { context, traceparent }: Span): Record<string, string> => {
  if (account.sendsTraceContext !== true) return {}
  return { traceparent, ...(context.state !== undefined && { tracestate: context.state }) }
}

const withinAttempt = <A, E, R>(
  request: UpstreamRequest,
  send: (request: Sendable, onReceived: OnReceived, attempt: CurrentAttempt | undefined) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => {
    const attempt = fiber.getFiberRef(currentAttempt)
    const headers = attempt?.span && traceHeaders(request.account, attempt.span)
    return encodeBody(headers ? { ...request, headers: { ...request.headers, ...headers } } : request, (sendable) =>
      send(
        sendable,
        (received) => {
          if (attempt !== undefined) attempt.providerRequestId = requestIdIn(received) ?? attempt.providerRequestId
        },
        attempt
      )
    )
  })

/** Headers whose values add up; of any other the account's own wins. */
const lists: ReadonlySet<string> = new Set(["anthropic-beta"])

const headersOf = (request: Sendable, accept: string): Record<string, string> => {
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

const make = (agent: Agent, idleTimeoutMillis: number) => {
  // The router bounds every attempt, and an exchange its silence: zeros switch off undici's own 300 s.
  const send = (request: Sendable, accept: string, exchange: GatheredExchange | StreamedExchange) => {
    try {
      const url = new URL(`${request.account.baseUrl}${request.path}`)
      agent.dispatch(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method: request.method ?? "POST",
          headers: headersOf(request, accept),
          body: toDispatchBody(request.body),
          headersTimeout: 0,
          bodyTimeout: 0
        },
        exchange
      )
    } catch (error) {
      exchange.onResponseError(undefined, error instanceof Error ? error : new Error(String(error)))
    }
    return Effect.sync(() => exchange.cancel())
  }

  const post = (request: Sendable, onReceived: OnReceived, attempt: CurrentAttempt | undefined) =>
    Effect.async<UpstreamResponse, ProviderFailure>((resume) => {
      if (attempt?.abortedBy !== undefined) return resume(Effect.fail(attempt.abortedBy))
      const exchange = new GatheredExchange(
        answerLimitBytes,
        (outcome) => {
          if (!("broke" in outcome)) resume(Effect.succeed(outcome))
          else if (outcome.broke === "too large") resume(Effect.fail(tooLarge(outcome.received)))
          else resume(Effect.fail(toFailure(request)(outcome.broke, outcome.received, outcome.unsent)))
        },
        onReceived
      )
      if (attempt !== undefined) {
        attempt.onAbort = (failure) => {
          resume(Effect.fail(failure))
          exchange.cancel()
        }
      }
      return send(request, "application/json", exchange)
    })

  const open = Effect.fnUntraced(function* (request: Sendable, onReceived: OnReceived) {
    let exchange: StreamedExchange | undefined
    yield* Effect.addFinalizer(() => Effect.sync(() => exchange?.cancel()))
    return yield* Effect.async<UpstreamStream, ProviderFailure>((resume) => {
      const flowing: StreamedExchange = new StreamedExchange(
        idleTimeoutMillis,
        (head) => {
          const finish = () => flowing.finish()
          const next: UpstreamStream["next"] = (done) => flowing.next(done)
          resume(Effect.map(head, ({ status, headers }) => ({ status, headers, next, finish })))
        },
        toFailure(request),
        onReceived
      )
      exchange = flowing
      return send(request, "text/event-stream", flowing)
    })
  })

  return {
    post: (request: UpstreamRequest) => withinAttempt(request, post),
    open: (request: UpstreamRequest) => withinAttempt(request, open)
  }
}

export class Upstream extends Context.Tag("gateway/Upstream")<
  Upstream,
  {
    /** Any method and status; past 64 MiB a failure of class `retry`. */
    readonly post: (request: UpstreamRequest) => Effect.Effect<UpstreamResponse, ProviderFailure>
    /** Cancelled when the scope closes. */
    readonly open: (request: UpstreamRequest) => Effect.Effect<UpstreamStream, ProviderFailure, Scope.Scope>
  }
>() {
  static readonly layer = (timeouts: { readonly connectTimeoutSeconds: number; readonly idleTimeoutSeconds: number }) =>
    Layer.scoped(
      Upstream,
      Effect.acquireRelease(
        Effect.sync(() => new Agent({ connect: { timeout: timeouts.connectTimeoutSeconds * 1_000 } })),
        (agent) => Effect.promise(() => agent.destroy())
      ).pipe(Effect.map((agent) => make(agent, timeouts.idleTimeoutSeconds * 1_000)))
    )
}
