import { Effect, Exit, Layer, Option, Predicate, type Scope, Stream } from "effect"
import { formatMediaName } from "../domain/Media.ts"
import { MediaStore, MediaStoreFailed, type NewMedia } from "../services/media/MediaStore.ts"
import { Ids } from "../services/runtime/Ids.ts"
import { forEachPart, makeStore } from "./DiskStore.ts"
import * as Client from "./S3Client.ts"

const partBytes = 8 * 1024 * 1024
/** S3's limit of parts per file. */
const maxParts = 10_000

interface Upload {
  readonly key: string
  /** Stored with the file and returned with each download. Names must be lower-case. */
  readonly headers: Readonly<Record<string, string>>
}

const noSuchUpload = "NoSuchUpload"

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const failure = (detail: string) => new Client.S3Failed({ detail, status: 200, code: undefined, isTransient: false })

const manifest = (etags: ReadonlyArray<string>) => {
  const parts = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escape(etag)}</ETag></Part>`)
  const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
  return Buffer.from(`<CompleteMultipartUpload xmlns="${namespace}">${parts.join("")}</CompleteMultipartUpload>`)
}

const makeUpload = ({ ask, refusal, retryTransient }: Client.S3Client) => {
  /** Deletes what was uploaded so far. Tries only once, because a lifecycle rule of the bucket removes remains. */
  const discard = (key: string, query: Readonly<Record<string, string>> = {}) =>
    Effect.ignore(ask({ method: "DELETE", key, query }))

  /** Removes the file unless the store has refused it: after a request without a response, it may exist. */
  const removeUncertain = (key: string) => (exit: Exit.Exit<unknown, Client.S3Failed>) => {
    const refused = Exit.isFailure(exit) && exit.cause._tag === "Fail" && (exit.cause.error.status ?? 500) < 500
    return Exit.isSuccess(exit) || refused ? Effect.void : discard(key)
  }

  const putWhole = ({ headers, key }: Upload, body: Uint8Array) =>
    retryTransient(ask({ method: "PUT", key, headers, body })).pipe(Effect.onExit(removeUncertain(key)), Effect.asVoid)

  const createUpload = ({ headers, key }: Upload) =>
    retryTransient(
      Effect.flatMap(ask({ method: "POST", key, headers, query: { uploads: "" } }), ({ body }) => {
        const id = Client.elementOf(body.toString("utf8"), "UploadId")
        return id === undefined || id === "" ? failure("the store started an upload without an id") : Effect.succeed(id)
      })
    )

  const sendPart = (key: string, uploadId: string, number: number, body: Uint8Array) =>
    retryTransient(
      Effect.flatMap(
        ask({ method: "PUT", key, query: { partNumber: String(number), uploadId }, body }),
        ({ header }) => {
          const etag = header("etag")
          return etag === undefined ? failure("the store accepted a part without an etag") : Effect.succeed(etag)
        }
      )
    )

  const complete = (key: string, uploadId: string, etags: ReadonlyArray<string>) => {
    const request = { method: "POST", key, query: { uploadId }, body: manifest(etags) } as const
    const once = Effect.flatMap(ask(request), ({ body }) => {
      const text = body.toString("utf8")
      // Checks the body too, because the store may send status 200 first and then fail.
      if (text.includes("<CompleteMultipartUploadResult")) return Effect.void
      return refusal(request, 200, text, true)
    })
    let hasStarted = false
    const exists = Effect.asVoid(ask({ method: "HEAD", key }))
    return retryTransient(
      Effect.suspend(() => {
        const isFirst = !hasStarted
        hasStarted = true
        // Accepts a missing upload if the file exists: an earlier attempt may have succeeded without a response.
        return Effect.catchIf(
          once,
          ({ code }) => !isFirst && code === noSuchUpload,
          (error) => Effect.mapError(exists, () => error)
        )
      })
    )
  }

  /** Uploads a large file in parts. The file appears only when the upload is completed. */
  const putInParts = <E>(
    upload: Upload,
    body: Stream.Stream<Uint8Array, E>
  ): Effect.Effect<void, E | Client.S3Failed, Scope.Scope> =>
    Effect.gen(function* () {
      const { key } = upload
      const etags: Array<string> = []
      let uploadId: string | undefined
      yield* Effect.addFinalizer((exit) =>
        Exit.isSuccess(exit) || uploadId === undefined ? Effect.void : discard(key, { uploadId })
      )
      const use = Effect.fnUntraced(function* (part: Uint8Array, isLast: boolean) {
        if (uploadId === undefined && isLast) return yield* putWhole(upload, part)
        if (etags.length === maxParts) return yield* failure(`the file has more than ${maxParts} parts`)
        uploadId ??= yield* createUpload(upload)
        etags.push(yield* sendPart(key, uploadId, etags.length + 1, part))
        if (isLast) yield* complete(key, uploadId, etags).pipe(Effect.onExit(removeUncertain(key)))
      })
      yield* forEachPart(body, partBytes, use)
    })

  return { putWhole, putInParts }
}

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
    const upload = makeUpload(client)

    const askFor = (method: "HEAD" | "GET" | "DELETE", key: string) =>
      client.retryTransient(client.ask({ method, key }))

    const orAbsent =
      <A>(absent: A) =>
      (work: Effect.Effect<A, Client.S3Failed>) =>
        Effect.catchAll(work, (error) => (isMissing(error) ? Effect.succeed(absent) : toStoreFailure(error)))

    const put = <E>({ body, type, visibility }: NewMedia<E>) =>
      Effect.suspend(() => {
        const key = formatMediaName({ visibility, id: ids.unguessable(), type })
        const file = { key, headers: { "content-type": type, "cache-control": cacheControl[visibility] } }
        const isSmall = Predicate.isUint8Array(body) && body.length <= partBytes
        const stored = isSmall
          ? upload.putWhole(file, body)
          : Effect.scoped(upload.putInParts(file, Predicate.isUint8Array(body) ? Stream.make(body) : body))
        return Effect.as(stored, key)
      }).pipe(Effect.mapError((error) => (error instanceof Client.S3Failed ? toStoreFailure(error) : error)))

    // Checks with HEAD first, because a DELETE succeeds even if the file does not exist.
    const remove = (name: string) =>
      askFor("HEAD", name).pipe(Effect.zipRight(askFor("DELETE", name)), Effect.as(true), orAbsent(false))

    const nothing = { type: "image/png", visibility: "private", body: new Uint8Array() } as const
    return yield* makeStore({
      publicUrl: options.publicUrl,
      put,
      sizeOf: (name) =>
        askFor("HEAD", name).pipe(
          Effect.map(({ header }) => Option.some(Number(header("content-length")))),
          orAbsent(Option.none<number>())
        ),
      read: (name) =>
        askFor("GET", name).pipe(
          Effect.map(({ body }) => Option.some<Uint8Array>(body)),
          orAbsent(Option.none<Uint8Array>())
        ),
      remove,
      probe: Effect.flatMap(put(nothing), remove),
      checkValidFor: "30 seconds"
    })
  })

export const layer = (
  options: Client.S3Options,
  timeouts: Client.S3Timeouts = { request: "1 minute", pause: "200 millis" },
  reread: Effect.Effect<Client.S3Credentials, { readonly message: string }> = Effect.succeed(options)
) => Layer.scoped(MediaStore, make(options, timeouts, reread))
