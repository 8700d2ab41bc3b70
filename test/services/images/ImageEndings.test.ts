import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import type { ImageModel, ImageVariant } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { ImageGenerations } from "../../../src/services/images/ImageGenerations.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { type Provider, Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"

const variant: ImageVariant = { resolution: "1K", shape: undefined, price: NanoUsd(40n), official: undefined }
const model: ImageModel = {
  id: "i",
  created: 0,
  surface: "image",
  edit: false,
  maxReferences: 8,
  variants: [variant],
  routes: [
    {
      id: "i@a",
      provider: { name: "a", adapter: "fake", baseUrl: undefined, credential: undefined, headers: {} },
      model: "theirs",
      preference: 1,
      weight: 1,
      options: {},
      editModel: undefined,
      resolutions: new Set(["1K"]),
      aspectRatios: new Set<string>(),
      cost: new Map()
    }
  ]
}

type Stage = FailpointName | "routing" | "storing"

/** An image that is interrupted at the stage, by a caller who cannot be interrupted or can. */
const interruptImage = Effect.fnUntraced(function* (stage: Stage, as: typeof Effect.interruptible) {
  const ledger = yield* Ledger
  const bench = yield* LedgerBench
  const { key, org } = yield* bench.organization(100n)
  const reached = yield* Deferred.make<void>()
  const opened = yield* Deferred.make<void>()
  const passAt = (name: Stage) =>
    name === stage ? Effect.zipRight(Deferred.succeed(reached, undefined), Deferred.await(opened)) : Effect.void
  const image: Provider["image"] = {
    generate: () => Effect.as(passAt("routing"), { bytes: png, revisedPrompt: undefined })
  }
  const store = new MediaStoreFake()
  store.after(passAt("storing"))
  const router = ProviderRouter.layer().pipe(
    Layer.provide(Layer.succeed(Providers, new Map([["fake", { adapter: "fake", image }]])))
  )
  const layer = ImageGenerations.layer.pipe(
    Layer.provide(Layer.mock(Idempotency, {})),
    Layer.provide(Layer.mock(ReferenceImages, { loadWithin: () => Effect.succeed([]) })),
    Layer.provide(Layer.mergeAll(router, store.layer, Layer.succeed(Failpoint, { reach: passAt })))
  )
  const images = yield* Effect.provide(ImageGenerations, layer)
  const caller = { key, org, scopes: undefined, rpm: undefined }
  const record = new RequestRecord({
    id: "1",
    requestId: "req_1",
    surface: "image",
    caller,
    rateLimit: 1,
    at: 0,
    startedAt: 0
  })
  const params = {
    model: "i",
    prompt: "a cat",
    references: [],
    resolution: undefined,
    size: undefined,
    aspectRatio: undefined,
    responseFormat: "url" as const
  }
  const generated = images.generate({ params, idempotencyKey: undefined, record, model, variant, shape: undefined })
  let isHandedOver = false
  const handOver = Effect.sync(() => {
    isHandedOver = true
  })
  const work = yield* Effect.fork(as(Effect.zipRight(generated, handOver)))
  yield* Deferred.await(reached)
  yield* Fiber.interruptFork(work)
  yield* Effect.yieldNow()
  yield* Deferred.succeed(opened, undefined)
  assert.isTrue(Exit.isInterrupted(yield* Fiber.await(work)))
  const { balance, held } = yield* ledger.balance(org)
  assert.isTrue(yield* bench.proved)
  const seen = { charge: record.summary.charge, spent: 100n - balance, held, stored: store.files.size }
  return { ...seen, isHandedOver }
})

const released = { charge: 0n, spent: 0n, held: 0n, stored: 0, isHandedOver: false }
const charged = { charge: 40n, spent: 40n, held: 0n, stored: 1 }

describe("an image that is interrupted", () => {
  for (const as of [Effect.interruptible, Effect.uninterruptible]) {
    const caller = as === Effect.interruptible ? "interruptible" : "uninterruptible"
    for (const stage of ["after_hold", "routing"] as const) {
      it.effect(`at ${stage}, in an ${caller} fiber, costs nothing`, function* () {
        const seen = yield* Effect.provide(interruptImage(stage, as), LedgerFake.layer)
        assert.deepStrictEqual<unknown>(seen, released)
      })
    }
    for (const stage of ["storing", "before_settle", "after_settle"] as const) {
      it.effect(`at ${stage}, in an ${caller} fiber, is charged, and its picture stays`, function* () {
        const { isHandedOver, ...seen } = yield* Effect.provide(interruptImage(stage, as), LedgerFake.layer)
        assert.deepStrictEqual<unknown>(seen, charged)
        // A fiber that can be interrupted ends with its interruption, after the charge.
        assert.strictEqual(isHandedOver, as === Effect.uninterruptible)
      })
    }
  }
})
