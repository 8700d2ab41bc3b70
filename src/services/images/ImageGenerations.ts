import { Clock, Context, Effect, Exit, Layer, Option, Schema } from "effect"
import { IdempotencyConflict, type RoutingFailure, type SettleFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import { answerCost, type ImageParams, imagePrice } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageModel, ImageVariant, Shape } from "../../domain/Model.ts"
import { type NanoUsd, zero } from "../../domain/Money.ts"
import { sizeOf } from "../../domain/Shape.ts"
import { isSandbox } from "../catalog/CatalogRules.ts"
import { fingerprint, keyFrom } from "../idempotency/Fingerprint.ts"
import { type FirstClaim, Idempotency } from "../idempotency/Idempotency.ts"
import { type HoldRefused, type HoldRequest, Ledger } from "../ledger/Ledger.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { type ReferenceFailure, ReferenceImages } from "../media/ReferenceImages.ts"
import { rowOf } from "../requests/RequestEntry.ts"
import { countStatedCost, entryOf, type RequestRecord } from "../requests/RequestRecord.ts"
import { ProviderRouter, type RoutedImage } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/RequestMemory.ts"
import { withSpan } from "../tracing/Tracing.ts"

export interface ImageTask {
  readonly model: ImageModel
  readonly variant: ImageVariant
  /** As the request names it. */
  readonly shape: Shape | undefined
  readonly params: ImageParams
  readonly idempotencyKey: string | undefined
  readonly record: RequestRecord
  /** For what is kept beside the body. */
  readonly reserveMemory?: ReserveMemory | undefined
}

type Repeated = Pick<ImageTask, "params" | "idempotencyKey" | "record">

export interface ImageResult {
  /** Unix seconds. */
  readonly created: number
  /** One of them, or both. */
  readonly image: { readonly url?: string; readonly bytes?: Uint8Array }
  /** The picture's own, such as `1536x1024`; undefined for replays of results that were kept without it. */
  readonly size: string | undefined
  readonly revisedPrompt: string | undefined
  readonly sandbox: boolean
  readonly replayed: boolean
  /** Nothing for a replay. */
  readonly charge: NanoUsd
}

export type ImageFailure = ReferenceFailure | IdempotencyConflict | HoldRefused | RoutingFailure | SettleFailed

/** What a replay answers; kept with the idempotency key. Links are built when they are handed out. */
const KeptImage = Schema.Struct({
  created: Schema.Number,
  media: Schema.String,
  format: Schema.Literal("url", "b64_json", "both"),
  size: Schema.optionalWith(Schema.String, { exact: true }),
  revisedPrompt: Schema.NullOr(Schema.String),
  sandbox: Schema.Boolean
})
type KeptImage = typeof KeptImage.Type

const decodeKept = Schema.decodeUnknown(KeptImage)
const longestRevision = 32_768

const toStoredRevision = (text: string): string =>
  text
    .slice(0, longestRevision)
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
    /** What the key's request got from a model that is no longer sold like that; none for any other request. */
    readonly replay: (repeated: Repeated) => Effect.Effect<Option.Option<ImageResult>, IdempotencyConflict>
    /** Deletes what was stored only for a replay; false: not now. */
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
  if (claim?._tag === "Replay") return yield* readKept(services, record, claim.result)
  return yield* services.ledger.withHold(quote(task), (hold) => {
    record.add({ type: "held", hold: hold.id })
    record.facts.trace?.admit()
    return drawAndSettle(services, task, hold, claim)
  })
}, Effect.scoped)

const quote = ({ record: { facts }, variant }: ImageTask): HoldRequest => {
  const { concurrency, isDisputed, isOrgCapped, key, org } = facts.caller
  // The same id lets a refund find the log's row.
  return { id: facts.id, org, key, concurrency, isOrgCapped, isDisputed, upTo: imagePrice(variant) }
}

/** A stop interrupts it until a provider has answered: its picture is stored, charged and handed over. */
const drawAndSettle = Effect.fnUntraced(function* (
  services: ImageServices,
  task: ImageTask,
  hold: Hold,
  claim: FirstClaim | undefined
) {
  yield* services.failpoint.reach("after_hold")
  const isStored = task.params.responseFormat !== "b64_json" || claim !== undefined
  const drawn = yield* Effect.interruptible(draw(services, task, isStored))
  return yield* Effect.catchTag(settleAndKeep(services, task, hold, drawn, claim), "MediaStoreFailed", ({ detail }) =>
    Effect.dieMessage(`the picture could not be stored: ${detail}`)
  )
}, Effect.uninterruptible)

const draw = Effect.fnUntraced(function* (
  { references, router, store }: ImageServices,
  { params, model, record, reserveMemory = unlimitedMemory, shape, variant }: ImageTask,
  isStored: boolean
) {
  if (isStored) yield* checkStore(store)
  const pictures = yield* references.loadWithin(reserveMemory, params.references, "image")
  const request = { prompt: params.prompt, resolution: variant.resolution, shape, references: pictures }
  return yield* router.image(model, request, record.attempts, record.facts.startedAt)
})

/** Fails before an image is bought that cannot be stored. */
const checkStore = ({ check }: ImageServices["store"]) =>
  Effect.catchTag(check, "MediaStoreFailed", ({ detail }) => Effect.dieMessage(`no picture can be stored: ${detail}`))

const settleAndKeep = Effect.fnUntraced(function* (
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
  const kept: KeptImage = {
    created: Math.floor((yield* Clock.currentTimeMillis) / 1000),
    media: name,
    size,
    format: responseFormat,
    revisedPrompt: revisedPrompt === undefined ? null : toStoredRevision(revisedPrompt),
    sandbox: isSandbox(route)
  }
  yield* failpoint.reach("before_settle")
  const endedAt = yield* Monotonic.millis
  record.add({ type: "answered", at: endedAt })
  const { summary } = record
  const row = rowOf(entryOf(summary, { status: 200, code: null }, endedAt))
  const settling = ledger.settle(hold, imagePrice(variant), { effect: claim?.keep(kept, hold.id), row })
  const settlement = yield* withSpan(record.facts.trace, "settle", settling)
  // How it was answered follows.
  record.settled(settlement, false)
  countStatedCost(summary)
  yield* failpoint.reach("after_settle")
  return {
    created: kept.created,
    image: {
      ...(isLinked && { url: store.link(name) }),
      ...(responseFormat !== "url" && { bytes: picture.bytes })
    },
    size,
    revisedPrompt: kept.revisedPrompt ?? undefined,
    sandbox: kept.sandbox,
    replayed: false,
    charge: settlement.charged
  }
}, Effect.scoped)

/** Removed again unless the customer got it. */
const storePicture = (store: ImageServices["store"], { bytes, type }: Picture, visibility: "public" | "private") =>
  Effect.acquireRelease(store.put({ type, visibility, body: bytes }), (name, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignoreLogged(store.remove(name))
  )

const claimKey = Effect.fnUntraced(function* (
  { idempotency }: ImageServices,
  { params, idempotencyKey, record }: Repeated
) {
  if (idempotencyKey === undefined) return undefined
  const { references: sent, ...fields } = params
  return yield* idempotency.claim({
    org: record.facts.caller.org,
    endpoint: "images",
    key: yield* keyFrom(idempotencyKey),
    fingerprint: yield* fingerprint(fields, sent)
  })
})

const replay = Effect.fnUntraced(function* (services: ImageServices, repeated: Repeated) {
  const claim = yield* Effect.catchTag(claimKey(services, repeated), "InvalidRequest", () => Effect.succeed(undefined))
  if (claim?._tag !== "Replay") return Option.none()
  return Option.some(yield* readKept(services, repeated.record, claim.result))
}, Effect.scoped)

const readKept = Effect.fnUntraced(function* ({ store }: ImageServices, record: RequestRecord, result: unknown) {
  const kept = yield* Effect.orDie(decodeKept(result))
  const image = yield* Effect.orDie(findImage(store, kept))
  if (image === undefined) {
    // A request that failed after its settlement removes the picture before its refund frees the key.
    yield* Effect.logWarning(`Request ${record.facts.requestId} repeats one whose picture is gone: ${kept.media}`)
    return yield* new IdempotencyConflict()
  }
  record.note("replayed")
  const { created, sandbox, size } = kept
  const revisedPrompt = kept.revisedPrompt ?? undefined
  return { created, image, size, revisedPrompt, sandbox, replayed: true, charge: zero } satisfies ImageResult
})

const findImage = Effect.fnUntraced(function* (store: ImageServices["store"], { format, media }: KeptImage) {
  if (format === "url") return (yield* store.has(media)) ? { url: store.link(media) } : undefined
  const bytes = Option.getOrUndefined(yield* store.read(media))
  if (bytes === undefined) return undefined
  return format === "both" ? { url: store.link(media), bytes } : { bytes }
})

const forget = ({ store }: ImageServices, result: unknown) =>
  decodeKept(result).pipe(
    Effect.flatMap(({ format, media }) => (format === "b64_json" ? store.remove(media) : Effect.succeed(true))),
    Effect.as(true),
    Effect.catchTag("ParseError", () => Effect.succeed(true)),
    Effect.catchTag("MediaStoreFailed", ({ detail }) =>
      Effect.as(
        Effect.logWarning(`The picture of an expired idempotency key could not be removed yet: ${detail}`),
        false
      )
    )
  )
