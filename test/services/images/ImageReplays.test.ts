import { Effect, Layer, Logger, Option } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import type { ImageFormat } from "../../../src/domain/Image.ts"
import type { ImageModel, ImageVariant } from "../../../src/domain/Model.ts"
import { zero } from "../../../src/domain/Money.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { ImageGenerations } from "../../../src/services/images/ImageGenerations.ts"
import { MediaStore } from "../../../src/services/media/MediaStore.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { acme } from "../../fakes/ProviderFake.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"

const variant: ImageVariant = { resolution: "1K", shape: undefined, price: zero, official: undefined }
const model: ImageModel = {
  id: "i",
  created: 0,
  surface: "image",
  edit: false,
  maxReferences: 8,
  variants: [variant],
  routes: []
}

/** Where nothing is held or made, a request for what has been kept under its key. */
const repeated = Effect.fnUntraced(function* (format: ImageFormat) {
  const warnings: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => warnings.push(`${logLevel.label} ${String(message)}`))
  const store = yield* Effect.provide(MediaStore, new MediaStoreFake().layer)
  const visibility = format === "b64_json" ? "private" : "public"
  const media = yield* store.put({ type: "image/png", visibility, body: png })
  const result = { created: 7, media, format, size: "1x1", revisedPrompt: null, sandbox: false }
  const layer = ImageGenerations.layer.pipe(
    Layer.provide(Layer.mock(Idempotency, { claim: () => Effect.succeed({ _tag: "Replay", result }) })),
    Layer.provide(Layer.mergeAll(LedgerFake.layer, Layer.mock(ReferenceImages, {}), Layer.mock(ProviderRouter, {}))),
    Layer.provide(Layer.succeed(MediaStore, store))
  )
  const images = yield* Effect.provide(ImageGenerations, layer)
  const record = new RequestRecord({
    id: "1",
    requestId: "req_1",
    surface: "image",
    caller: { key: KeyId.make("key_1"), org: acme, scopes: undefined, rpm: undefined },
    rateLimit: 1,
    at: 0,
    startedAt: 0
  })
  const params = {
    model: "i",
    prompt: "a secret cat",
    references: [],
    resolution: undefined,
    size: undefined,
    aspectRatio: undefined,
    responseFormat: format
  }
  const request = { params, idempotencyKey: "k", record }
  const ways = {
    "of a model on sale": images.generate({ ...request, model, variant, shape: undefined }),
    "of a model that has left the catalog": Effect.map(images.replay(request), Option.getOrThrow)
  }
  return { media, record, store, warnings, ways, logging: Logger.replace(Logger.defaultLogger, logger) }
})

const cases = (["url", "b64_json", "both"] as const).flatMap((format) =>
  (["of a model on sale", "of a model that has left the catalog"] as const).map((way) => [format, way] as const)
)

describe("the replay of an image", () => {
  it.effect.each(cases)("as %s, %s, is the stored result while its image exists", function* ([format, way]) {
    const { logging, media, record, store, warnings, ways } = yield* repeated(format)
    const { image, replayed } = yield* Effect.provide(ways[way], logging)
    assert.isTrue(replayed)
    assert.strictEqual(image.url, format === "b64_json" ? undefined : store.link(media))
    assert.deepStrictEqual(image.bytes && Buffer.from(image.bytes), format === "url" ? undefined : png)
    assert.deepStrictEqual([...record.summary.notes], ["replayed"])
    assert.deepStrictEqual(warnings, [])
  })

  it.effect.each(cases)("as %s, %s, conflicts once its image is removed", function* ([format, way]) {
    const { logging, media, record, store, warnings, ways } = yield* repeated(format)
    yield* store.remove(media)
    const failure = yield* Effect.flip(Effect.provide(ways[way], logging))
    assert.strictEqual(failure._tag, "IdempotencyConflict")
    assert.deepStrictEqual([...record.summary.notes], [])
    assert.deepStrictEqual(warnings, [`WARN Request req_1 replays a request whose image was removed: ${media}`])
  })
})
