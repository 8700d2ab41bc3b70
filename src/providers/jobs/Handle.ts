import { Either, Schema } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import type { VideoHandle } from "../../services/routing/Provider.ts"

export interface Handle {
  readonly id: string
  readonly status: string
  readonly result: string
  readonly cancel: string
}

const longestPath = 2_000
const hidden = /%2f|%5c|%2e/i

/** A job's id as the host gives it; undefined where it cannot be part of an address. */
export const readId = (given: unknown): string | undefined =>
  typeof given === "string" && given !== "" && !/\p{Surrogate}/u.test(given) ? given : undefined

/** Whether the path stays below the account's own address, whoever reads it. */
export const isInside = (account: ProviderAccount, path: string): boolean => {
  const written = `${account.baseUrl}${path}`
  if (!path.startsWith("/") || path.length > longestPath || hidden.test(path) || !URL.canParse(written)) return false
  const base = new URL(`${account.baseUrl}/`)
  const url = new URL(written)
  return url.origin === base.origin && `${url.pathname}${url.search}` === `${base.pathname.slice(0, -1)}${path}`
}

/** The URL may be the host's or a proxy's. */
export const rebase = (account: ProviderAccount, url: unknown): string | undefined => {
  if (typeof url !== "string" || !URL.canParse(url)) return undefined
  const base = new URL(`${account.baseUrl}/`)
  const { host, pathname, search } = new URL(url)
  const prefixed = host === base.host && pathname.startsWith(base.pathname)
  const path = `${prefixed ? pathname.slice(base.pathname.length - 1) : pathname}${search}`
  return isInside(account, path) ? path : undefined
}

const Stored = Schema.parseJson(
  Schema.Struct({ id: Schema.String, status: Schema.String, result: Schema.String, cancel: Schema.String })
)

export const encodeHandle: (handle: Handle) => VideoHandle = Schema.encodeSync(Stored)

const decode = Schema.decodeUnknownEither(Stored)

/** Left where it leads away from the account's own address. */
export const decodeHandleText = (account: ProviderAccount, text: VideoHandle): Either.Either<Handle, string> =>
  Either.flatMap(
    Either.mapLeft(decode(text), () => "the handle cannot be read"),
    (handle) =>
      [handle.status, handle.result, handle.cancel].every((path) => isInside(account, path))
        ? Either.right(handle)
        : Either.left("the handle leads away from the provider's own address")
  )
