import { Readable } from "node:stream"
import { Context, Effect, Layer, Predicate, Redacted, type Scope } from "effect"
import { type Dispatcher, errors } from "undici"
import type { ProviderAccount } from "../../domain/Model.ts"
import { withoutQuotations } from "../../domain/Quotations.ts"
import { makeAgent } from "../../node/Outgoing.ts"
import type { Chunks } from "../../services/media/Chunks.ts"
import { type CurrentAttempt, currentAttempt, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { errorCode } from "../../services/runtime/System.ts"
import type { Span } from "../../services/tracing/Tracing.ts"
import {
  GatheredExchange,
  type Outcome,
  type Received,
  StreamedExchange,
  type Taken,
  type UpstreamHead,
  type UpstreamHeaders,
  type UpstreamResponse
} from "./Exchange.ts"
import { encodeJson, LargeJson } from "./Json.ts"

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

type Body = Exclude<UpstreamRequest["body"], LargeJson>

const isChunks = (body: Body): body is Chunks =>
  body !== undefined && !Predicate.isString(body) && !Predicate.isUint8Array(body)

type Sendable = Omit<UpstreamRequest, "body"> & { readonly body: Body }

const traceHeaders = (account: ProviderAccount, { state, traceparent }: Span): Record<string, string> => {
  if (account.sendsTraceContext !== true) return {}
  return { traceparent, ...(state !== undefined && { tracestate: state }) }
}

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

/** The vendor's own before what a proxy of theirs adds. */
const names = [
  "x-fal-request-id",
  "request-id",
  "x-request-id",
  "apim-request-id",
  "x-amzn-requestid",
  "x-goog-request-id",
  "x-generation-id",
  "x-tt-logid",
  "cf-ray"
]

/** The id under which the vendor's support finds a request: at most 200 printable characters. */
const requestIdIn = (headers: UpstreamHeaders): string | undefined => {
  for (const name of names) {
    const value = headers[name]
    const text = typeof value === "string" ? value : value?.[0]
    const id = text?.replace(/[^ -~]/g, "").slice(0, 200)
    if (id) return id
  }
  return undefined
}

const answerLimitBytes = 64 * 1024 * 1024
const detailLimit = 1_000
const detailSource = 65_536

export const bearer: UpstreamRequest["authorization"] = (secret) => ({ authorization: `Bearer ${secret}` })

export interface UpstreamStream extends UpstreamHead {
  /** Hands over new bytes or the end; returns a canceller. */
  readonly next: (done: (taken: Taken) => void) => () => void
  /** The scope then lets the body end instead of breaking the connection. */
  readonly finish: () => void
}

/** Bounded, on one line, without the account's credential and without what it quotes, which may be the prompt. */
export const toLoggable = (account: ProviderAccount, text: string): string => {
  const secret = account.credential === undefined ? "" : Redacted.value(account.credential)
  const source = text.slice(0, detailSource)
  const clean = secret === "" ? source : source.replaceAll(secret, "[credential]")
  return withoutQuotations(clean).slice(0, detailLimit).replaceAll(/\s+/g, " ").trim()
}

const codeOf = (error: Error): string => errorCode(error) ?? ""

/** The codes of a slow connect, of a proxy that does not reach the host in time, and of a silent body. */
const deadlines: ReadonlySet<string> = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT"
])

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

const toDispatchBody = (body: Body): string | Uint8Array | Readable | null =>
  isChunks(body) ? Readable.from(body, { objectMode: false }) : (body ?? null)

type OnReceived = (headers: UpstreamHeaders) => void

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
      detail: toLoggable(account, `${codeOf(error)} ${text}`)
    })
  }

const encodeBody = <A, E, R>(
  request: UpstreamRequest,
  send: (request: Sendable) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  request.body instanceof LargeJson
    ? Effect.flatMap(EventLoop.runInSlices(encodeJson(request.body)), (body) => send({ ...request, body }))
    : send({ ...request, body: request.body })

const sendWithin = <A, E, R>(
  attempt: CurrentAttempt | undefined,
  request: UpstreamRequest,
  send: (request: Sendable, onReceived: OnReceived) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const headers = attempt?.span && traceHeaders(request.account, attempt.span)
  return encodeBody(headers ? { ...request, headers: { ...request.headers, ...headers } } : request, (sendable) =>
    send(sendable, (received) => {
      if (attempt !== undefined) attempt.providerRequestId = requestIdIn(received) ?? attempt.providerRequestId
    })
  )
}

const withinAttempt = <A, E, R>(
  request: UpstreamRequest,
  send: (request: Sendable, onReceived: OnReceived) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => sendWithin(fiber.getFiberRef(currentAttempt), request, send))

const make = (agent: Dispatcher, idleTimeoutMillis: number) => {
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
  }

  const resultOf = (request: Sendable, outcome: Outcome): Effect.Effect<UpstreamResponse, ProviderFailure> => {
    if (!("broke" in outcome)) return Effect.succeed(outcome)
    const { broke, received, unsent } = outcome
    return Effect.fail(broke === "too large" ? tooLarge(received) : toFailure(request)(broke, received, unsent))
  }

  const post = (request: Sendable, onReceived: OnReceived) =>
    Effect.async<UpstreamResponse, ProviderFailure>((resume) => {
      const done = (outcome: Outcome) => resume(resultOf(request, outcome))
      const exchange = new GatheredExchange(answerLimitBytes, done, onReceived)
      send(request, "application/json", exchange)
      return Effect.sync(() => exchange.cancel())
    })

  /** Without a finalizer, which would cost more than all else here. */
  const postWithin = (attempt: CurrentAttempt, request: Sendable, onReceived: OnReceived) =>
    Effect.async<UpstreamResponse, ProviderFailure>((resume) => {
      if (attempt.abortedBy !== undefined) return resume(Effect.fail(attempt.abortedBy))
      const done = (outcome: Outcome) => {
        // The attempt may have made its next call.
        if (attempt.endCall === end) attempt.endCall = undefined
        resume(resultOf(request, outcome))
      }
      const exchange = new GatheredExchange(answerLimitBytes, done, onReceived)
      const end: CurrentAttempt["endCall"] = (failure) => {
        if (failure !== undefined) resume(Effect.fail(failure))
        exchange.cancel()
      }
      attempt.endCall = end
      send(request, "application/json", exchange)
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
      send(request, "text/event-stream", flowing)
      return Effect.sync(() => flowing.cancel())
    })
  })

  return {
    post: (request: UpstreamRequest, attempt?: CurrentAttempt) =>
      attempt === undefined
        ? withinAttempt(request, post)
        : sendWithin(attempt, request, (sendable, onReceived) => postWithin(attempt, sendable, onReceived)),
    open: (request: UpstreamRequest) => withinAttempt(request, open)
  }
}

export class Upstream extends Context.Tag("gateway/Upstream")<
  Upstream,
  {
    /**
     * Any method and status; past 64 MiB a failure of class `retry`. Interruption cancels it; of an `attempt` that is
     * handed on, `endCall` does.
     */
    readonly post: (
      request: UpstreamRequest,
      attempt?: CurrentAttempt
    ) => Effect.Effect<UpstreamResponse, ProviderFailure>
    /** Cancelled when the scope closes. */
    readonly open: (request: UpstreamRequest) => Effect.Effect<UpstreamStream, ProviderFailure, Scope.Scope>
  }
>() {
  static readonly layer = (timeouts: { readonly connectTimeoutSeconds: number; readonly idleTimeoutSeconds: number }) =>
    Layer.scoped(
      Upstream,
      Effect.map(makeAgent({ connectTimeoutMillis: timeouts.connectTimeoutSeconds * 1_000 }), (agent) =>
        make(agent, timeouts.idleTimeoutSeconds * 1_000)
      )
    )
}
