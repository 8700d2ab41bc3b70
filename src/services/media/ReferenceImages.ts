import { Context, Duration, Effect, Layer, Option } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { largestReference, maxReferences, type Picture, parseMediaName, type Reference } from "../../domain/Media.ts"
import { nthImage, referenceProblems, refuseReference } from "../../domain/ReferenceProblem.ts"
import { Fetcher, type FetchFailed } from "./Fetcher.ts"
import { MediaStore } from "./MediaStore.ts"
import { pictureOf } from "./Pictures.ts"

const within = Duration.seconds(30)
const atOnce = 4

/** In bytes; a chat's pictures stay in its body, as base64. */
const largestTogether = { image: maxReferences * largestReference, messages: 64 * 1024 * 1024 }

/** What the customer is told of a reference that cannot be used, and what operators are. */
interface Unusable {
  readonly problem: string
  readonly subject: string | undefined
  readonly detail: string
}

const refuse =
  (param: "image" | "messages") =>
  ({ detail, problem, subject }: Unusable): Effect.Effect<never, InvalidRequest> =>
    Effect.zipRight(Effect.logDebug("A reference image was refused", detail), refuseReference(param, problem, subject))

const fetchProblem = ({ problem, reason, status }: FetchFailed): string => {
  if (problem !== undefined) return referenceProblems[problem]
  if (status !== undefined && reason === "status") return referenceProblems.status(status)
  if (reason === "too_large") return referenceProblems.large
  return reason === "timeout" ? referenceProblems.time : referenceProblems.network
}

const tookTooLong = ({ length }: ReadonlyArray<unknown>): Unusable => ({
  problem: referenceProblems.time,
  subject: length > 1 ? "One of the images" : undefined,
  detail: "took too long"
})

/** Names one of the images of a request, by its place among them. */
export type NameImage = (index: number) => string | undefined

export class ReferenceImages extends Context.Tag("gateway/ReferenceImages")<
  ReferenceImages,
  {
    /** Fails with `Failed to process the reference image.`, and a hint that says why, unless each is a complete picture of at most 20 MiB. */
    readonly load: (
      references: ReadonlyArray<Reference>,
      param: "image" | "messages",
      nameOf?: NameImage
    ) => Effect.Effect<ReadonlyArray<Picture>, InvalidRequest>
    /** Returns the URLs of this gateway's own public media, which `load` reads from the store. */
    readonly findOwn: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>>
    /** Applies the rules of our own fetches to URLs that the provider fetches. */
    readonly check: (urls: ReadonlyArray<string>, nameOf?: NameImage) => Effect.Effect<unknown, InvalidRequest>
  }
>() {
  static readonly layer = Layer.effect(
    ReferenceImages,
    Effect.gen(function* () {
      const fetcher = yield* Fetcher
      const store = yield* MediaStore

      const findOwn = (urls: ReadonlyArray<string>) =>
        Effect.sync(() => new Set(urls.filter((url) => Option.isSome(store.named(url)))))

      /** Checks size and type before reading, because a stored video may be large. */
      const readOwn = Effect.fnUntraced(function* (name: string, subject: string | undefined) {
        const fail = (problem: string) => Effect.fail<Unusable>({ problem, subject, detail: `${name}: ${problem}` })
        const size = yield* Effect.orDie(store.sizeOf(name))
        if (Option.isNone(size)) return yield* fail(referenceProblems.stored)
        if (parseMediaName(name)?.type === "video/mp4") return yield* fail(referenceProblems.format)
        if (size.value > largestReference) return yield* fail(referenceProblems.large)
        const bytes = yield* Effect.orDie(store.read(name))
        return Option.isSome(bytes) ? bytes.value : yield* fail(referenceProblems.stored)
      })

      const unusableUrl =
        (subject: string | undefined) =>
        (failure: FetchFailed): Unusable => ({
          problem: fetchProblem(failure),
          subject,
          detail: `${failure.reason}: ${failure.detail}`
        })

      const bytesOf = (reference: Reference, subject: string | undefined): Effect.Effect<Uint8Array, Unusable> => {
        if (reference._tag === "Bytes") return Effect.succeed(reference.bytes)
        const { url } = reference
        const own = store.named(url)
        if (Option.isSome(own)) return readOwn(own.value, subject)
        const fetched = fetcher.bytes({
          url,
          from: "customer",
          limitBytes: largestReference,
          withinSeconds: Duration.toSeconds(within)
        })
        return Effect.mapError(fetched, unusableUrl(subject))
      }

      const load = Effect.fn("ReferenceImages.load")(
        function* (
          references: ReadonlyArray<Reference>,
          param: "image" | "messages",
          nameOf: NameImage = (index) => nthImage(index, references.length)
        ) {
          let together = 0
          const one = Effect.fnUntraced(function* (reference: Reference, index: number) {
            const subject = nameOf(index)
            const fail = (problem: string) => Effect.fail<Unusable>({ problem, subject, detail: problem })
            const bytes = yield* bytesOf(reference, subject)
            together += bytes.length
            if (bytes.length > largestReference) return yield* fail(referenceProblems.large)
            if (together > largestTogether[param]) {
              return yield* fail(referenceProblems.largeTogether(largestTogether[param]))
            }
            const picture = yield* pictureOf(bytes)
            return yield* Option.match(picture, {
              onNone: () => fail(referenceProblems.format),
              onSome: Effect.succeed
            })
          })
          return yield* Effect.forEach(references, one, { concurrency: atOnce })
        },
        (loading, references, param) =>
          loading.pipe(
            Effect.timeoutFail({ duration: within, onTimeout: () => tookTooLong(references) }),
            Effect.catchAll(refuse(param))
          )
      )

      const check = (
        urls: ReadonlyArray<string>,
        nameOf: NameImage = (index) => nthImage(index, urls.length)
      ): Effect.Effect<unknown, InvalidRequest> =>
        Effect.forEach(
          urls,
          (url, index) => Effect.mapError(fetcher.check({ url, from: "customer" }), unusableUrl(nameOf(index))),
          { concurrency: atOnce }
        ).pipe(
          Effect.timeoutFail({ duration: within, onTimeout: () => tookTooLong(urls) }),
          Effect.catchAll(refuse("messages"))
        )

      return ReferenceImages.of({ load, findOwn, check })
    })
  )
}
