import { Clock, Context, Effect, Exit, Layer, Option, Schema } from "effect"
import { IdempotencyConflict, type RoutingFailure, type SettleFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import { answerCost, type ImageParams, imagePrice } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageModel, ImageVariant, Shape } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import { sizeOf } from "../../domain/Shape.ts"
import { isSandbox } from "../catalog/CatalogRules.ts"
import { type FirstClaim, fingerprint, Idempotency, keyFrom } from "../idempotency/Idempotency.ts"
import { termsOf } from "../ledger/HoldPlacement.ts"
import { type HoldRefused, type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { type ReferenceFailure, ReferenceImages } from "../media/ReferenceImages.ts"
import { rowOf } from "../requests/RequestEntry.ts"
import { countStatedCost, entryOf, type RequestRecord } from "../requests/RequestRecord.ts"
import { ProviderRouter, type RoutedImage } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/InFlight.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { withSpan } from "../tracing/Tracing.ts"

export interface ImageTask {
  readonly model: ImageModel
  readonly variant: ImageVariant
  /** The aspect ratio as the request names it. */
  readonly shape: Shape | undefined
  readonly params: ImageParams
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
  /** Reserves memory for images, in addition to the body. */
  readonly reserveMemory?: ReserveMemory | undefined
}

type RepeatedImage = Pick<ImageTask, "params" | "idempotencyKey" | "record">

export interface ImageResult {
  /** Unix seconds. */
  readonly created: number
  /** Contains the link, the bytes or both, depending on the requested format. */
  readonly image: { readonly url?: string; readonly bytes?: Uint8Array }
  /** The size of the image, such as `1536x1024`. Undefined for replays of old results without a size. */
  readonly size: string | undefined
  readonly revisedPrompt: string | undefined
  readonly sandbox: boolean
  readonly replayed: boolean
  /** Zero for a replay. */
  readonly charge: NanoUsd
}

export type ImageFailure = ReferenceFailure | IdempotencyConflict | HoldRefused | RoutingFailure | SettleFailed

/** The result stored with an idempotency key. A replay makes the link from `media`. */
const StoredImage = Schema.Struct({
  created: Schema.Number,
  media: Schema.String,
  format: Schema.Literal("url", "b64_json", "both"),
  size: Schema.optionalWith(Schema.String, { exact: true }),
  revisedPrompt: Schema.NullOr(Schema.String),
  sandbox: Schema.Boolean
})
type StoredImage = typeof StoredImage.Type

const decodeStoredImage = Schema.decodeUnknown(StoredImage)
const maxRevisionLength = 32_768

const toStoredRevision = (text: string): string =>
  text
    .slice(0, maxRevisionLength)
    .replaceAll("\u0000", " ")
    .replace(/\p{Cs}/gu, "?")

const imageServices = Effect.gen(function* () {
  return {
    idempotency: yield* Idempotency,
    ledger: yield* Ledger,
    references: yield* ReferenceImages,
    router: yield* ProviderRouter,
    store: yield* MediaStore,
    failpoint: yield* Failpoint
  }
})
type ImageServices = Effect.Effect.Success<typeof imageServices>

export class ImageGenerations extends Context.Tag("gateway/ImageGenerations")<
  ImageGenerations,
  {
    readonly generate: (task: ImageTask) => Effect.Effect<ImageResult, ImageFailure>
    /**
     * Returns the stored result of a repeated request even if its model is no longer sold; none if there is no result.
     */
    readonly replay: (repeated: RepeatedImage) => Effect.Effect<Option.Option<ImageResult>, IdempotencyConflict>
    /** Deletes media stored only for replays. Returns false if the deletion must be retried. */
    readonly forget: (result: unknown) => Effect.Effect<boolean>
  }
>() {
  static readonly layer = Layer.effect(
    ImageGenerations,
    Effect.map(imageServices, (services) =>
      ImageGenerations.of({
        generate: (task) => generate(services, task),
        replay: (repeated) => replay(services, repeated),
        forget: (result) => forget(services, result)
      })
    )
  )
}

const generate = Effect.fnUntraced(function* (services: ImageServices, task: ImageTask) {
  const { record } = task
  record.facts.trace?.resolve(task.model.id)
  const claim = yield* claimKey(services, task)
  if (claim?._tag === "Replay") return yield* readStoredImage(services, record, claim.result)
  return yield* services.ledger.withHold(quote(task), (hold) => {
    record.add({ type: "held", hold: hold.id })
    record.facts.trace?.admit()
    return generateAndSettle(services, task, hold, claim)
  })
}, Effect.scoped)

const quote = ({ record: { facts }, variant }: ImageTask): HoldRequest => ({
  // The log row gets the same id, so a refund finds the row.
  id: facts.id,
  ...termsOf(facts.caller),
  upTo: imagePrice(variant)
})

/**
 * A shutdown interrupts it only until a provider has answered. After that the image is stored, charged and returned.
 */
const generateAndSettle = Effect.fnUntraced(function* (
  services: ImageServices,
  task: ImageTask,
  hold: Hold,
  claim: FirstClaim | undefined
) {
  yield* services.failpoint.reach("after_hold")
  const isStored = task.params.responseFormat !== "b64_json" || claim !== undefined
  const routedImage = yield* generateImage(services, task, isStored)
  return yield* Effect.catchTag(
    storeAndSettle(services, task, hold, routedImage, claim),
    "MediaStoreFailed",
    ({ detail }) => Effect.dieMessage(`the image could not be stored: ${detail}`)
  )
}, Effect.uninterruptible)

const generateImage = Effect.fnUntraced(function* (
  { references, router, store }: ImageServices,
  { params, model, record, reserveMemory = unlimitedMemory, shape, variant }: ImageTask,
  isStored: boolean
) {
  if (isStored) yield* Effect.interruptible(checkStore(store))
  const pictures = yield* Effect.interruptible(references.loadWithin(reserveMemory, params.references, "image"))
  const request = { prompt: params.prompt, resolution: variant.resolution, shape, references: pictures }
  return yield* router.image(model, request, record.attempts, record.facts.startedAt)
})

/** Fails if the media store cannot be written, before a provider is called. */
const checkStore = ({ check }: ImageServices["store"]) =>
  Effect.catchTag(check, "MediaStoreFailed", ({ detail }) => Effect.dieMessage(`images cannot be stored: ${detail}`))

const storeAndSettle = Effect.fnUntraced(function* (
  { failpoint, ledger, store }: ImageServices,
  { params, variant, record }: ImageTask,
  hold: Hold,
  { inputTokens, picture, revisedPrompt, route, statedCost }: RoutedImage,
  claim: FirstClaim | undefined
) {
  record.add({ type: "answered", route })
  record.add({ type: "measured", usage: { images: 1 }, cost: answerCost(route, variant, inputTokens) })
  if (statedCost !== undefined) record.add({ type: "stated", cost: statedCost })
  const { responseFormat } = params
  const isLinked = responseFormat !== "b64_json"
  const name = yield* isLinked || claim !== undefined
    ? storePicture(store, picture, isLinked ? "public" : "private")
    : Effect.succeed("")
  const size = sizeOf(picture)
  const storedImage: StoredImage = {
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    media: name,
    size,
    format: responseFormat,
    revisedPrompt: revisedPrompt === undefined ? null : toStoredRevision(revisedPrompt),
    sandbox: isSandbox(route)
  }
  yield* failpoint.reach("before_settle")
  const endedAt = yield* monotonicMillis
  record.add({ type: "answered", at: endedAt })
  const { summary } = record
  const logRow = rowOf(entryOf(summary, { status: 200, code: null }, endedAt))
  const settleHold = ledger.settle(hold, imagePrice(variant), { effect: claim?.finalize(storedImage, hold.id), logRow })
  const settlement = yield* withSpan(record.facts.trace, "settle", settleHold)
  // Passes false, because the response may still fail, so the logged row may be incomplete.
  record.settled(settlement, false)
  countStatedCost(summary)
  yield* failpoint.reach("after_settle")
  return {
    created: storedImage.created,
    image: {
      ...(isLinked && { url: store.link(name) }),
      ...(responseFormat !== "url" && { bytes: picture.bytes })
    },
    size,
    revisedPrompt: storedImage.revisedPrompt ?? undefined,
    sandbox: storedImage.sandbox,
    replayed: false,
    charge: settlement.charged
  }
}, Effect.scoped)

/** Stores the image, and removes it if the request fails. */
const storePicture = (store: ImageServices["store"], { bytes, type }: Picture, visibility: "public" | "private") =>
  Effect.acquireRelease(store.put({ type, visibility, body: bytes }), (name, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignoreLogged(store.remove(name))
  )

const claimKey = Effect.fnUntraced(function* (
  { idempotency }: ImageServices,
  { params, idempotencyKey, record }: RepeatedImage
) {
  if (idempotencyKey === undefined) return undefined
  const { references, ...fields } = params
  return yield* idempotency.claim({
    org: record.facts.caller.org,
    endpoint: "images",
    key: yield* keyFrom(idempotencyKey),
    fingerprint: yield* fingerprint(fields, references)
  })
})

const replay = Effect.fnUntraced(function* (services: ImageServices, repeated: RepeatedImage) {
  const claim = yield* Effect.catchTag(claimKey(services, repeated), "InvalidRequest", () => Effect.succeed(undefined))
  if (claim?._tag !== "Replay") return Option.none()
  return Option.some(yield* readStoredImage(services, repeated.record, claim.result))
}, Effect.scoped)

const readStoredImage = Effect.fnUntraced(function* ({ store }: ImageServices, record: RequestRecord, result: unknown) {
  const storedImage = yield* Effect.orDie(decodeStoredImage(result))
  const image = yield* Effect.orDie(findImage(store, storedImage))
  if (image === undefined) {
    // A request that fails after its settlement removes its image before its refund releases the key.
    yield* Effect.logWarning(
      `Request ${record.facts.requestId} replays a request whose image was removed: ${storedImage.media}`
    )
    return yield* new IdempotencyConflict()
  }
  record.note("replayed")
  const { created, sandbox, size } = storedImage
  const revisedPrompt = storedImage.revisedPrompt ?? undefined
  return { created, image, size, revisedPrompt, sandbox, replayed: true, charge: zero } satisfies ImageResult
})

const findImage = Effect.fnUntraced(function* (store: ImageServices["store"], { format, media }: StoredImage) {
  if (format === "url") return (yield* store.has(media)) ? { url: store.link(media) } : undefined
  const bytes = Option.getOrUndefined(yield* store.read(media))
  if (bytes === undefined) return undefined
  return format === "both" ? { url: store.link(media), bytes } : { bytes }
})

const forget = ({ store }: ImageServices, result: unknown) =>
  decodeStoredImage(result).pipe(
    Effect.flatMap(({ format, media }) => (format === "b64_json" ? store.remove(media) : Effect.succeed(true))),
    Effect.as(true),
    Effect.catchTag("ParseError", () => Effect.succeed(true)),
    Effect.catchTag("MediaStoreFailed", ({ detail }) =>
      Effect.as(
        Effect.logWarning(`Failed to remove the image of an expired idempotency key; it will be retried: ${detail}`),
        false
      )
    )
  )
