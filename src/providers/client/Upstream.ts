import { Readable } from "node:stream"
import { Context, Effect, Layer, Predicate, Redacted, type Scope } from "effect"
import { type Dispatcher, errors } from "undici"
import type { ProviderAccount } from "../../domain/Model.ts"
import { redactQuotations } from "../../domain/Quotations.ts"
import { makeAgent } from "../../node/Outgoing.ts"
import type { ByteChunks } from "../../services/media/Base64.ts"
import { type CurrentAttempt, currentAttempt, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { errorCode } from "../../services/runtime/System.ts"
import type { Span } from "../../services/tracing/Tracing.ts"
import {
  type BodyRead,
  BufferedExchange,
  type Outcome,
  type ReceivedStatus,
  StreamedExchange,
  type UpstreamHead,
  type UpstreamHeaders,
  type UpstreamResponse
} from "./Exchange.ts"
import { encodeJson, LargeJson } from "./JsonFields.ts"

/** `path` is below the account's base URL. Redirects are not followed. */
export interface UpstreamRequest {
  readonly account: ProviderAccount
  readonly method?: "GET" | "POST" | "PUT" | undefined
  readonly path: string
  readonly authorization: (secret: string) => Readonly<Record<string, string>>
  /** Header names are lower case. The account's headers override these; list headers are joined. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | Uint8Array | ByteChunks | LargeJson | undefined
  readonly contentType?: string | undefined
}

type Body = Exclude<UpstreamRequest["body"], LargeJson>

const isChunks = (body: Body): body is ByteChunks =>
  body !== undefined && !Predicate.isString(body) && !Predicate.isUint8Array(body)

type EncodedRequest = Omit<UpstreamRequest, "body"> & { readonly body: Body }

const traceHeaders = (account: ProviderAccount, { state, traceparent }: Span): Record<string, string> => {
  if (account.sendsTraceContext !== true) return {}
  return { traceparent, ...(state !== undefined && { tracestate: state }) }
}

/** Headers whose values are joined. For all others, the account's value overrides. */
const listHeaders: ReadonlySet<string> = new Set(["anthropic-beta"])

const headersOf = (request: EncodedRequest, accept: string): Record<string, string> => {
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
    const [headerName, value = ""] = [name.toLowerCase(), account.headers[name]]
    headers[headerName] =
      listHeaders.has(headerName) && headers[headerName] !== undefined ? `${value},${headers[headerName]}` : value
  }
  return headers
}

/** Headers with a request id. The vendor's own come before those of its proxies. */
const requestIdHeaders = [
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

/** Returns the request id for the vendor's support, at most 200 printable characters. */
const requestIdIn = (headers: UpstreamHeaders): string | undefined => {
  for (const name of requestIdHeaders) {
    const value = headers[name]
    const text = typeof value === "string" ? value : value?.[0]
    const id = text?.replace(/[^ -~]/g, "").slice(0, 200)
    if (id) return id
  }
  return undefined
}

const maxAnswerBytes = 64 * 1024 * 1024
const maxDetailLength = 1_000
const maxDetailSourceLength = 65_536

export const bearer: UpstreamRequest["authorization"] = (secret) => ({ authorization: `Bearer ${secret}` })

export interface UpstreamStream extends UpstreamHead {
  /** Passes new bytes or the end to `done`. Returns a function that cancels. */
  readonly next: (done: (bodyRead: BodyRead) => void) => () => void
  /** Call this after the last needed event: closing the scope then does not break the connection. */
  readonly finish: () => void
}

/** Returns a bounded, single-line text without the credential, and without quotations, which may be the prompt. */
export const toLoggable = (account: ProviderAccount, text: string): string => {
  const secret = account.credential === undefined ? "" : Redacted.value(account.credential)
  const source = text.slice(0, maxDetailSourceLength)
  const clean = secret === "" ? source : source.replaceAll(secret, "[credential]")
  return redactQuotations(clean).slice(0, maxDetailLength).replaceAll(/\s+/g, " ").trim()
}

const codeOf = (error: Error): string => errorCode(error) ?? ""

/** Error codes of a slow connection, a slow proxy, and an idle body. */
const timeoutCodes: ReadonlySet<string> = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT"
])

/** Error codes of a malformed request or response. */
const malformedCodes: ReadonlySet<string> = new Set([
  "UND_ERR_HEADERS_OVERFLOW",
  "UND_ERR_INVALID_ARG",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH"
])
const isMalformed = (error: Error): boolean =>
  error instanceof errors.HTTPParserError || malformedCodes.has(codeOf(error))

/** A provider may refuse a larger body by closing the connection while it is sent, which loses the response. */
const smallBodyBytes = 64 * 1024

const tooLarge = (status: ReceivedStatus) =>
  new ProviderFailure({ class: "retry", status, detail: `the response is larger than ${maxAnswerBytes} bytes` })

const toDispatchBody = (body: Body): string | Uint8Array | Readable | null =>
  isChunks(body) ? Readable.from(body, { objectMode: false }) : (body ?? null)

type OnReceived = (headers: UpstreamHeaders) => void

const toFailure =
  ({ account, body }: EncodedRequest) =>
  (error: Error, receivedStatus: ReceivedStatus, isUnsent: boolean): ProviderFailure => {
    const isLarge = (body?.length ?? 0) > smallBodyBytes
    const text = error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message
    return new ProviderFailure({
      class: timeoutCodes.has(codeOf(error)) ? "timeout" : "network",
      status: receivedStatus,
      isUnsent,
      isRequestFault: isMalformed(error) || (isLarge && !isUnsent),
      detail: toLoggable(account, `${codeOf(error)} ${text}`)
    })
  }

const encodeBody = <A, E, R>(
  request: UpstreamRequest,
  send: (request: EncodedRequest) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  request.body instanceof LargeJson
    ? Effect.flatMap(EventLoop.runInSlices(encodeJson(request.body)), (body) => send({ ...request, body }))
    : send({ ...request, body: request.body })

const sendWithin = <A, E, R>(
  attempt: CurrentAttempt | undefined,
  request: UpstreamRequest,
  send: (request: EncodedRequest, onReceived: OnReceived) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  const headers = attempt?.span && traceHeaders(request.account, attempt.span)
  return encodeBody(headers ? { ...request, headers: { ...request.headers, ...headers } } : request, (encoded) =>
    send(encoded, (responseHeaders) => {
      if (attempt !== undefined) attempt.providerRequestId = requestIdIn(responseHeaders) ?? attempt.providerRequestId
    })
  )
}

const withinAttempt = <A, E, R>(
  request: UpstreamRequest,
  send: (request: EncodedRequest, onReceived: OnReceived) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.withFiberRuntime((fiber) => sendWithin(fiber.getFiberRef(currentAttempt), request, send))

const make = (agent: Dispatcher, idleTimeoutMillis: number) => {
  // The router limits every attempt, and an exchange its idle time. Zeros disable undici's own 300 s.
  const send = (request: EncodedRequest, accept: string, exchange: BufferedExchange | StreamedExchange) => {
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

  const resultOf = (request: EncodedRequest, outcome: Outcome): Effect.Effect<UpstreamResponse, ProviderFailure> => {
    if (!("error" in outcome)) return Effect.succeed(outcome)
    const { error, receivedStatus, isUnsent } = outcome
    return Effect.fail(
      error === "too large" ? tooLarge(receivedStatus) : toFailure(request)(error, receivedStatus, isUnsent)
    )
  }

  const post = (request: EncodedRequest, onReceived: OnReceived) =>
    Effect.async<UpstreamResponse, ProviderFailure>((resume) => {
      const done = (outcome: Outcome) => resume(resultOf(request, outcome))
      const exchange = new BufferedExchange(maxAnswerBytes, done, onReceived)
      send(request, "application/json", exchange)
      return Effect.sync(() => exchange.cancel())
    })

  /** Cancelled by `attempt.endCall`, because a finalizer would cost more than the rest of this function. */
  const postWithin = (attempt: CurrentAttempt, request: EncodedRequest, onReceived: OnReceived) =>
    Effect.async<UpstreamResponse, ProviderFailure>((resume) => {
      if (attempt.abortedBy !== undefined) return resume(Effect.fail(attempt.abortedBy))
      const done = (outcome: Outcome) => {
        // The attempt may have started its next call.
        if (attempt.endCall === endCall) attempt.endCall = undefined
        resume(resultOf(request, outcome))
      }
      const exchange = new BufferedExchange(maxAnswerBytes, done, onReceived)
      const endCall: CurrentAttempt["endCall"] = (failure) => {
        if (failure !== undefined) resume(Effect.fail(failure))
        exchange.cancel()
      }
      attempt.endCall = endCall
      send(request, "application/json", exchange)
    })

  const open = Effect.fnUntraced(function* (request: EncodedRequest, onReceived: OnReceived) {
    let exchange: StreamedExchange | undefined
    yield* Effect.addFinalizer(() => Effect.sync(() => exchange?.cancel()))
    return yield* Effect.async<UpstreamStream, ProviderFailure>((resume) => {
      const streamed: StreamedExchange = new StreamedExchange(
        idleTimeoutMillis,
        (head) => {
          const finish = () => streamed.finish()
          const next: UpstreamStream["next"] = (done) => streamed.next(done)
          resume(Effect.map(head, ({ status, headers }) => ({ status, headers, next, finish })))
        },
        toFailure(request),
        onReceived
      )
      exchange = streamed
      send(request, "text/event-stream", streamed)
      return Effect.sync(() => streamed.cancel())
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
     * Sends a request and returns the response with any status. Fails with class `retry` beyond 64 MiB. Interruption
     * cancels the call. With an `attempt`, its `endCall` cancels instead.
     */
    readonly post: (
      request: UpstreamRequest,
      attempt?: CurrentAttempt
    ) => Effect.Effect<UpstreamResponse, ProviderFailure>
    /** Opens a streamed response. Closing the scope cancels it. */
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
