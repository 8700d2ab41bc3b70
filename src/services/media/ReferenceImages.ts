import { Context, Duration, Effect, Layer, Option, Stream } from "effect"
import type { GatewayBusy, InvalidRequest } from "../../domain/Failure.ts"
import {
  maxReferenceBytes,
  maxReferences,
  nthImage,
  type Picture,
  parseMediaName,
  type Reference,
  referenceProblems,
  refuseReference
} from "../../domain/Media.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/InFlight.ts"
import { base64Length } from "./Base64.ts"
import { Fetcher, type FetchFailed } from "./Fetcher.ts"
import { MediaStore } from "./MediaStore.ts"
import { pictureOf } from "./Pictures.ts"

const loadTimeout = Duration.seconds(30)
const maxConcurrentLoads = 4

/** In bytes, for all images of a request. Images of a chat request stay in its body as base64. */
const maxTotalBytes = { image: maxReferences * maxReferenceBytes, messages: 64 * 1024 * 1024 }

/** Why a reference cannot be used: `problem` for the customer, `detail` for operators. */
interface ReferenceFault {
  readonly problem: string
  readonly subject: string | undefined
  readonly detail: string
}

const isReferenceFault = (failure: ReferenceFault | GatewayBusy): failure is ReferenceFault => "problem" in failure

const refuse =
  (param: "image" | "messages") =>
  ({ detail, problem, subject }: ReferenceFault): Effect.Effect<never, InvalidRequest> =>
    Effect.zipRight(Effect.logDebug("A reference image was rejected", detail), refuseReference(param, problem, subject))

const fetchProblem = ({ problem, reason, status }: FetchFailed): string => {
  if (problem !== undefined) return referenceProblems[problem]
  if (status !== undefined && reason === "status") return referenceProblems.status(status)
  if (reason === "too_large") return referenceProblems.large
  return reason === "timeout" ? referenceProblems.time : referenceProblems.network
}

const timeoutFault = ({ length }: ReadonlyArray<unknown>): ReferenceFault => ({
  problem: referenceProblems.time,
  subject: length > 1 ? "One of the images" : undefined,
  detail: "took too long"
})

type Param = "image" | "messages"

export type ReferenceFailure = InvalidRequest | GatewayBusy

/** Returns how error messages name the image with this index. */
type NameImage = (index: number) => string | undefined

export class ReferenceImages extends Context.Tag("gateway/ReferenceImages")<
  ReferenceImages,
  {
    /**
     * Fails with `Failed to process the reference image.` and a hint, unless each is a complete image of at most 20
     * MiB.
     */
    readonly load: (
      references: ReadonlyArray<Reference>,
      param: Param,
      nameOf?: NameImage
    ) => Effect.Effect<ReadonlyArray<Picture>, InvalidRequest>
    /** Like `load`, and reserves memory for fetched images, because a small body may name large ones. */
    readonly loadWithin: (
      reserve: ReserveMemory,
      references: ReadonlyArray<Reference>,
      param: Param,
      nameOf?: NameImage
    ) => Effect.Effect<ReadonlyArray<Picture>, ReferenceFailure>
    /** Returns the URLs of this gateway's own public media, which `load` reads from the store. */
    readonly findOwn: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>>
    /** Checks URLs that a provider will fetch, by the same rules as the gateway's own fetches. */
    readonly check: (urls: ReadonlyArray<string>, nameOf?: NameImage) => Effect.Effect<unknown, InvalidRequest>
  }
>() {
  static readonly layer = Layer.effect(
    ReferenceImages,
    Effect.gen(function* () {
      const fetcher = yield* Fetcher
      const store = yield* MediaStore

      const findOwn = (urls: ReadonlyArray<string>) =>
        Effect.sync(() => new Set(urls.filter((url) => Option.isSome(store.nameOf(url)))))

      /** Checks size and type before reading, because a stored video may be large. */
      const readOwn = Effect.fnUntraced(function* (name: string, subject: string | undefined, reserve: ReserveMemory) {
        const fail = (problem: string) =>
          Effect.fail<ReferenceFault>({ problem, subject, detail: `${name}: ${problem}` })
        const size = yield* Effect.orDie(store.sizeOf(name))
        if (Option.isNone(size)) return yield* fail(referenceProblems.stored)
        if (parseMediaName(name)?.type === "video/mp4") return yield* fail(referenceProblems.format)
        if (size.value > maxReferenceBytes) return yield* fail(referenceProblems.large)
        yield* reserve(size.value)
        const bytes = yield* Effect.orDie(store.read(name))
        return Option.isSome(bytes) ? bytes.value : yield* fail(referenceProblems.stored)
      })

      const toReferenceFault =
        (subject: string | undefined) =>
        (failure: FetchFailed): ReferenceFault => ({
          problem: fetchProblem(failure),
          subject,
          detail: `${failure.reason}: ${failure.detail}`
        })

      const bytesOf = (
        reference: Reference,
        subject: string | undefined,
        reserve: ReserveMemory
      ): Effect.Effect<Uint8Array, ReferenceFault | GatewayBusy> => {
        if (reference._tag === "Bytes") return Effect.succeed(reference.bytes)
        const { url } = reference
        const ownName = store.nameOf(url)
        if (Option.isSome(ownName)) return readOwn(ownName.value, subject, reserve)
        const chunks = fetcher.stream({
          url,
          from: "customer",
          limitBytes: maxReferenceBytes,
          withinSeconds: Duration.toSeconds(loadTimeout)
        })
        const fetchAll = chunks.pipe(
          Stream.mapError(toReferenceFault(subject)),
          Stream.tap(({ length }) => reserve(length)),
          Stream.runCollect
        )
        return Effect.map(fetchAll, (fetchedChunks) => Buffer.concat([...fetchedChunks]))
      }

      const loadWithin = Effect.fn("ReferenceImages.load")(
        function* (
          reserve: ReserveMemory,
          references: ReadonlyArray<Reference>,
          param: Param,
          nameOf: NameImage = (index) => nthImage(index, references.length)
        ) {
          let totalBytes = 0
          // A chat request keeps its images as base64, which takes more memory.
          const reserveFor = (bytes: number) => reserve(param === "image" ? bytes : base64Length(bytes))
          const loadOne = Effect.fnUntraced(function* (reference: Reference, index: number) {
            const subject = nameOf(index)
            const fail = (problem: string) => Effect.fail<ReferenceFault>({ problem, subject, detail: problem })
            const bytes = yield* bytesOf(reference, subject, reserveFor)
            totalBytes += bytes.length
            if (bytes.length > maxReferenceBytes) return yield* fail(referenceProblems.large)
            if (totalBytes > maxTotalBytes[param]) {
              return yield* fail(referenceProblems.largeTogether(maxTotalBytes[param]))
            }
            const picture = yield* pictureOf(bytes)
            return yield* Option.match(picture, {
              onNone: () => fail(referenceProblems.format),
              onSome: Effect.succeed
            })
          })
          return yield* Effect.forEach(references, loadOne, { concurrency: maxConcurrentLoads })
        },
        (loading, _reserve, references, param) =>
          loading.pipe(
            Effect.timeoutFail({ duration: loadTimeout, onTimeout: () => timeoutFault(references) }),
            Effect.catchIf(isReferenceFault, refuse(param))
          )
      )

      const load = (references: ReadonlyArray<Reference>, param: Param, nameOf?: NameImage) =>
        Effect.catchTag(loadWithin(unlimitedMemory, references, param, nameOf), "GatewayBusy", Effect.die)

      const check = (
        urls: ReadonlyArray<string>,
        nameOf: NameImage = (index) => nthImage(index, urls.length)
      ): Effect.Effect<unknown, InvalidRequest> =>
        Effect.forEach(
          urls,
          (url, index) => Effect.mapError(fetcher.check({ url, from: "customer" }), toReferenceFault(nameOf(index))),
          { concurrency: maxConcurrentLoads }
        ).pipe(
          Effect.timeoutFail({ duration: loadTimeout, onTimeout: () => timeoutFault(urls) }),
          Effect.catchAll(refuse("messages"))
        )

      return ReferenceImages.of({ load, loadWithin, findOwn, check })
    })
  )
}
