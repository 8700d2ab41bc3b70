import { Effect, Exit, type Scope, type Stream } from "effect"
import { forEachPart } from "../UploadParts.ts"
import { elementOf, type S3Client, S3Failed } from "./Client.ts"

export const partBytes = 8 * 1024 * 1024
/** S3's limit for one file. */
const maxParts = 10_000

export interface Upload {
  readonly key: string
  /** Lower-case names, served with the file. */
  readonly headers: Readonly<Record<string, string>>
}

const noSuchUpload = "NoSuchUpload"

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const failure = (detail: string) => new S3Failed({ detail, status: 200, code: undefined, transient: false })

const manifest = (etags: ReadonlyArray<string>) => {
  const parts = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escape(etag)}</ETag></Part>`)
  const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
  return Buffer.from(`<CompleteMultipartUpload xmlns="${namespace}">${parts.join("")}</CompleteMultipartUpload>`)
}

export const make = ({ retryTransient, ask, refusal }: S3Client) => {
  /** One quick try: a lifecycle rule of the bucket covers its failure. */
  const discard = (key: string, query: Readonly<Record<string, string>> = {}) =>
    Effect.ignore(ask({ method: "DELETE", key, query }))

  /** A request without an answer may have been done. */
  const removeUncertain = (key: string) => (exit: Exit.Exit<unknown, S3Failed>) => {
    const refused = Exit.isFailure(exit) && exit.cause._tag === "Fail" && (exit.cause.error.status ?? 500) < 500
    return Exit.isSuccess(exit) || refused ? Effect.void : discard(key)
  }

  const whole = ({ headers, key }: Upload, body: Uint8Array) =>
    retryTransient(ask({ method: "PUT", key, headers, body })).pipe(Effect.onExit(removeUncertain(key)), Effect.asVoid)

  const createUpload = ({ headers, key }: Upload) =>
    retryTransient(
      Effect.flatMap(ask({ method: "POST", key, headers, query: { uploads: "" } }), ({ body }) => {
        const id = elementOf(body.toString("utf8"), "UploadId")
        return id === undefined || id === "" ? failure("the store began an upload without an id") : Effect.succeed(id)
      })
    )

  const sendPart = (key: string, uploadId: string, number: number, body: Uint8Array) =>
    retryTransient(
      Effect.flatMap(
        ask({ method: "PUT", key, query: { partNumber: String(number), uploadId }, body }),
        ({ header }) => {
          const etag = header("etag")
          return etag === undefined ? failure("the store took a part without an etag") : Effect.succeed(etag)
        }
      )
    )

  const complete = (key: string, uploadId: string, etags: ReadonlyArray<string>) => {
    const request = { method: "POST", key, query: { uploadId }, body: manifest(etags) } as const
    const once = Effect.flatMap(ask(request), ({ body }) => {
      const text = body.toString("utf8")
      // The store may answer 200 before it has done the work, and then report a failure.
      if (text.includes("<CompleteMultipartUploadResult")) return Effect.void
      return refusal(request, 200, text, true)
    })
    let asked = false
    const exists = Effect.asVoid(ask({ method: "HEAD", key }))
    return retryTransient(
      Effect.suspend(() => {
        const isFirst = !asked
        asked = true
        // An earlier try may have succeeded without an answer.
        return Effect.catchIf(
          once,
          ({ code }) => !isFirst && code === noSuchUpload,
          (error) => Effect.mapError(exists, () => error)
        )
      })
    )
  }

  /** Larger files go in parts, which show only once all are there. */
  const inParts = <E>(
    upload: Upload,
    body: Stream.Stream<Uint8Array, E>
  ): Effect.Effect<void, E | S3Failed, Scope.Scope> =>
    Effect.gen(function* () {
      const { key } = upload
      const etags: Array<string> = []
      let uploadId: string | undefined
      yield* Effect.addFinalizer((exit) =>
        Exit.isSuccess(exit) || uploadId === undefined ? Effect.void : discard(key, { uploadId })
      )
      const use = Effect.fnUntraced(function* (part: Uint8Array, isLast: boolean) {
        if (uploadId === undefined && isLast) return yield* whole(upload, part)
        if (etags.length === maxParts) return yield* failure(`the file has more than ${maxParts} parts`)
        uploadId ??= yield* createUpload(upload)
        etags.push(yield* sendPart(key, uploadId, etags.length + 1, part))
        if (isLast) yield* complete(key, uploadId, etags).pipe(Effect.onExit(removeUncertain(key)))
      })
      yield* forEachPart(body, partBytes, use)
    })

  return { whole, inParts }
}
