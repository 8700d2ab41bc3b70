import { webcrypto } from "node:crypto"
import { Effect } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { Reference } from "../../domain/Media.ts"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json | undefined }

/** The order of fields does not count; an undefined field is absent. */
const canonicalize = (value: Json): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isList(value)) return `[${value.map(canonicalize).join(",")}]`
  const fields = Object.entries(value).flatMap(([name, field]) =>
    field === undefined ? [] : [{ name, text: `${JSON.stringify(name)}:${canonicalize(field)}` }]
  )
  fields.sort((one, other) => (one.name < other.name ? -1 : 1))
  return `{${fields.map(({ text }) => text).join(",")}}`
}

const isList: (value: Json) => value is ReadonlyArray<Json> = Array.isArray

/** Off the main thread: 20 MiB take longer than a stream should wait. */
const sha256 = (bytes: Uint8Array): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => webcrypto.subtle.digest("SHA-256", bytes)),
    (digest) => Buffer.from(digest).toString("hex")
  )

const identifyReference = (reference: Reference): Effect.Effect<Json> =>
  reference._tag === "Url"
    ? Effect.succeed({ url: reference.url })
    : Effect.map(sha256(reference.bytes), (hash) => ({ sha256: hash }))

/** Equal for equal requests, in hexadecimal; references count in order, by bytes or by URL. */
export const fingerprint = (
  fields: Readonly<Record<string, Json | undefined>>,
  references: ReadonlyArray<Reference>
): Effect.Effect<string> =>
  Effect.flatMap(Effect.forEach(references, identifyReference), (identities) =>
    sha256(Buffer.from(canonicalize([fields, identities])))
  )

const keyPattern = /^[\x21-\x7e]{1,255}$/

export const keyFrom = (header: string): Effect.Effect<string, InvalidRequest> =>
  keyPattern.test(header)
    ? Effect.succeed(header)
    : Effect.fail(
        new InvalidRequest({ message: "`Idempotency-Key` must be 1 to 255 visible ASCII characters.", param: null })
      )
