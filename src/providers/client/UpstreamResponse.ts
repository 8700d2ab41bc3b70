import { Clock, Effect, Option, Redacted } from "effect"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import type { FetchFailed, FetchRequest } from "../../services/media/Fetcher.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { type DecodeFailure, decodingFailure } from "./Classification.ts"
import type { BodyRead, UpstreamHead, UpstreamResponse } from "./Exchange.ts"
import { parseJson } from "./JsonFields.ts"
import { toLoggable, type UpstreamRequest, type UpstreamStream } from "./Upstream.ts"

const maxCollectedBytes = 16 * 1024 * 1024

export const isSuccess = (head: { readonly status: number }): boolean => head.status >= 200 && head.status < 300

const contentType = (stream: UpstreamStream): string => String(stream.headers["content-type"] ?? "").toLowerCase()

export const isPage = (stream: UpstreamStream): boolean => contentType(stream).includes("html")

export const isJson = (stream: UpstreamStream): boolean => contentType(stream).includes("json")

/** Reads the complete body. Returns the received part of an error's body that breaks, and no body beyond 16 MiB. */
export const collect = (stream: UpstreamStream): Effect.Effect<UpstreamResponse, ProviderFailure> => {
  const { headers, status } = stream
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return Effect.async((resume) => {
    let cancel = () => {}
    const toResponse = (): UpstreamResponse => ({ status, headers, body: Buffer.concat(chunks).toString("utf8") })
    const take = (bodyRead: BodyRead): void => {
      if (bodyRead._tag === "End") {
        const { outcome } = bodyRead
        return resume(
          isSuccess(stream) && Option.isSome(outcome) ? Effect.fail(outcome.value) : Effect.succeed(toResponse())
        )
      }
      for (const chunk of bodyRead.chunks) bytes += chunk.length
      chunks.push(...bodyRead.chunks)
      if (bytes > maxCollectedBytes) return resume(Effect.succeed({ status, headers, body: "" }))
      cancel = stream.next(take)
    }
    cancel = stream.next(take)
    return Effect.sync(() => cancel())
  })
}

/** Parses a body that may contain an image of many MiB. Yields to other requests before and after. */
export const parseLargeJson = ({ body }: UpstreamResponse): Effect.Effect<unknown> =>
  EventLoop.yieldTurn.pipe(
    Effect.map(() => parseJson(body)),
    Effect.zipLeft(EventLoop.yieldTurn)
  )

/** Decodes a response. Fails with a `ProviderFailure` of class `retry` if decoding throws. */
export const decodeSafely = <A, R>(
  account: ProviderAccount,
  { status }: UpstreamHead,
  decode: () => Effect.Effect<A, ProviderFailure, R>
): Effect.Effect<A, ProviderFailure, R> =>
  Effect.catchAllDefect(Effect.suspend(decode), (defect) => decodingFailure(account, status, defect))

export const failWith =
  (decodeFailure: DecodeFailure) =>
  ({ provider }: RouteBase, response: UpstreamResponse): Effect.Effect<never, ProviderFailure> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      decodeSafely(provider, response, () => Effect.fail(decodeFailure(provider, response, now)))
    )

/** The credential is sent to the account's own origin only. */
const credentialOrigin = (
  account: ProviderAccount,
  authorization: UpstreamRequest["authorization"]
): FetchRequest["ownOrigin"] => {
  if (account.baseUrl === undefined) return undefined
  const { credential } = account
  const accountHeaders = Object.entries(account.headers).map(([name, value]) => [name.toLowerCase(), value])
  return {
    origin: new URL(account.baseUrl).origin,
    headers: { ...(credential && authorization(Redacted.value(credential))), ...Object.fromEntries(accountHeaders) }
  }
}

export const resultRequest = (
  account: ProviderAccount,
  authorization: UpstreamRequest["authorization"],
  result: Pick<FetchRequest, "url" | "limitBytes" | "withinSeconds">
): FetchRequest => ({ ...result, from: "provider", ownOrigin: credentialOrigin(account, authorization) })

const classOf: Readonly<Record<FetchFailed["reason"], FailureClass>> = {
  refused: "retry",
  status: "retry",
  too_large: "retry",
  timeout: "timeout",
  network: "network"
}

/** Converts a failed download of a result. Its status defaults to 200, that of the response with the URL. */
export const fetchFailure =
  (account: ProviderAccount) =>
  ({ detail, reason, status }: FetchFailed): ProviderFailure =>
    new ProviderFailure({
      class: classOf[reason],
      status: status ?? 200,
      spent: "complete",
      detail: toLoggable(account, `the result could not be fetched: ${reason} ${detail}`)
    })
