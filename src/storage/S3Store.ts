import { Effect, Layer, Option, Predicate, Stream } from "effect"
import { formatMediaName, parseMediaName } from "../domain/Media.ts"
import { MediaStore, MediaStoreFailed, type NewMedia } from "../services/media/MediaStore.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { withCheck } from "./CheckedMediaStore.ts"
import { links } from "./Links.ts"
import * as Client from "./s3/Client.ts"
import * as Upload from "./s3/Upload.ts"

const cacheControl = { public: "public, max-age=31536000, immutable", private: "private, no-store" }

const isMissing = ({ code, status }: Client.S3Failed) => status === 404 && (code === undefined || code === "NoSuchKey")

const toStoreFailure = ({ detail }: Client.S3Failed) => new MediaStoreFailed({ detail })

const make = (
  options: Client.S3Options,
  timeouts: Client.S3Timeouts,
  reread: Effect.Effect<Client.S3Credentials, { readonly message: string }>
) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const client = yield* Client.make(options, timeouts, reread)
    const { retryTransient, ask } = client
    const upload = Upload.make(client)

    const find = (name: string) =>
      parseMediaName(name) === undefined
        ? Effect.succeedNone
        : retryTransient(ask({ method: "HEAD", key: name })).pipe(
            Effect.map(({ header }) => Option.some(Number(header("content-length")))),
            Effect.catchIf(isMissing, () => Effect.succeedNone)
          )

    const store = {
      put: <E>({ body, type, visibility }: NewMedia<E>) =>
        Effect.suspend(() => {
          const key = formatMediaName({ visibility, id: ids.unguessable(), type })
          const file = { key, headers: { "content-type": type, "cache-control": cacheControl[visibility] } }
          const isSmall = Predicate.isUint8Array(body) && body.length <= Upload.partBytes
          const stored = isSmall
            ? upload.whole(file, body)
            : Effect.scoped(upload.inParts(file, Predicate.isUint8Array(body) ? Stream.make(body) : body))
          return Effect.as(stored, key)
        }).pipe(
          Effect.mapError((error) => (error instanceof Client.S3Failed ? toStoreFailure(error) : error)),
          Effect.withSpan("MediaStore.put")
        ),
      ...links(options.publicUrl),
      has: Effect.fn("MediaStore.has")(
        (name: string) => Effect.map(find(name), Option.isSome),
        Effect.mapError(toStoreFailure)
      ),
      sizeOf: Effect.fn("MediaStore.sizeOf")(find, Effect.mapError(toStoreFailure)),
      read: Effect.fn("MediaStore.read")(
        function* (name: string) {
          if (parseMediaName(name) === undefined) return Option.none()
          const { body } = yield* retryTransient(ask({ method: "GET", key: name }))
          return Option.some(body)
        },
        Effect.catchIf(isMissing, () => Effect.succeed(Option.none())),
        Effect.mapError(toStoreFailure)
      ),
      remove: Effect.fn("MediaStore.remove")(
        function* (name: string) {
          if (Option.isNone(yield* find(name))) return false
          yield* retryTransient(ask({ method: "DELETE", key: name }))
          return true
        },
        Effect.catchIf(isMissing, () => Effect.succeed(false)),
        Effect.mapError(toStoreFailure)
      )
    }
    const nothing = { type: "image/png", visibility: "private", body: new Uint8Array() } as const
    return yield* withCheck(store, Effect.flatMap(store.put(nothing), store.remove), "30 seconds")
  })

export const layer = (
  options: Client.S3Options,
  timeouts: Client.S3Timeouts = { request: "1 minute", pause: "200 millis" },
  reread: Effect.Effect<Client.S3Credentials, { readonly message: string }> = Effect.succeed(options)
) => Layer.scoped(MediaStore, make(options, timeouts, reread))
