import { Clock, Effect, Option, Redacted } from "effect"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import type { FetchFailed, FetchRequest } from "../../services/media/Fetcher.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { type DecodeFailure, decodingFailure } from "./Classification.ts"
import type { Taken, UpstreamHead, UpstreamResponse } from "./Exchange.ts"
import { parseJson } from "./Json.ts"
import { toLoggable, type UpstreamRequest, type UpstreamStream } from "./Upstream.ts"

const collectLimitBytes = 16 * 1024 * 1024

export const isSuccess = (head: { readonly status: number }): boolean => head.status >= 200 && head.status < 300

const contentType = (stream: UpstreamStream): string => String(stream.headers["content-type"] ?? "").toLowerCase()

export const isPage = (stream: UpstreamStream): boolean => contentType(stream).includes("html")

export const isJson = (stream: UpstreamStream): boolean => contentType(stream).includes("json")

/** An error's body is taken as far as it came. */
export const collect = (stream: UpstreamStream): Effect.Effect<UpstreamResponse, ProviderFailure> => {
  const { headers, status } = stream
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return Effect.async((resume) => {
    let cancel = () => {}
    const whole = (): UpstreamResponse => ({ status, headers, body: Buffer.concat(chunks).toString("utf8") })
    const take = (taken: Taken): void => {
      if (taken._tag === "Over") {
        const { outcome } = taken
        return resume(
          isSuccess(stream) && Option.isSome(outcome) ? Effect.fail(outcome.value) : Effect.succeed(whole())
        )
      }
      for (const chunk of taken.chunks) bytes += chunk.length
      chunks.push(...taken.chunks)
      if (bytes > collectLimitBytes) return resume(Effect.succeed({ status, headers, body: "" }))
      cancel = stream.next(take)
    }
    cancel = stream.next(take)
    return Effect.sync(() => cancel())
  })
}

/** The body may hold a picture of many MiB, so other requests run before and after it. */
export const parseLargeJson = ({ body }: UpstreamResponse): Effect.Effect<unknown> =>
  EventLoop.yieldTurn.pipe(
    Effect.map(() => parseJson(body)),
    Effect.zipLeft(EventLoop.yieldTurn)
  )

/** Decodes a response; an exception becomes a `ProviderFailure` of class `retry`. */
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

/** The credential goes nowhere else. */
const ownOrigin = (account: ProviderAccount, authorization: UpstreamRequest["authorization"]): FetchRequest["own"] => {
  if (account.baseUrl === undefined) return undefined
  const { credential } = account
  const own = Object.entries(account.headers).map(([name, value]) => [name.toLowerCase(), value])
  return {
    origin: new URL(account.baseUrl).origin,
    headers: { ...(credential && authorization(Redacted.value(credential))), ...Object.fromEntries(own) }
  }
}

export const resultRequest = (
  account: ProviderAccount,
  authorization: UpstreamRequest["authorization"],
  result: Pick<FetchRequest, "url" | "limitBytes" | "withinSeconds">
): FetchRequest => ({ ...result, from: "provider", own: ownOrigin(account, authorization) })

const classOf: Readonly<Record<FetchFailed["reason"], FailureClass>> = {
  refused: "retry",
  status: "retry",
  too_large: "retry",
  timeout: "timeout",
  network: "network"
}

/** 200 stands for the response that named the result. */
export const fetchFailure =
  (account: ProviderAccount) =>
  ({ detail, reason, status }: FetchFailed): ProviderFailure =>
    new ProviderFailure({
      class: classOf[reason],
      status: status ?? 200,
      spent: "whole",
      detail: toLoggable(account, `the result could not be fetched: ${reason} ${detail}`)
    })
