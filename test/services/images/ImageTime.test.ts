import { Clock, Effect, Layer, TestClock } from "effect"
import type { ImageModel } from "../../../src/domain/Model.ts"
import { zero } from "../../../src/domain/Money.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { type Provider, Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { acme } from "../../fakes/ProviderFake.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"

const model: ImageModel = {
  id: "i",
  created: 0,
  surface: "image",
  edit: false,
  maxReferences: 8,
  variants: [{ resolution: "1K", shape: undefined, price: zero, official: undefined }],
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

/** Asks for an image whose request began so many seconds ago; says what came of it, and whether the provider knows. */
const after = Effect.fnUntraced(function* (seconds: number) {
  let asked = false
  const image: Provider["image"] = {
    generate: () =>
      Effect.sync(() => {
        asked = true
        return { bytes: png, revisedPrompt: undefined }
      })
  }
  const router = ProviderRouter.layer({ requestTimeoutSeconds: 290 }).pipe(
    Layer.provide(Layer.succeed(Providers, new Map([["fake", { adapter: "fake", image }]])))
  )
  yield* TestClock.adjust("1 hour")
  const since = (yield* Clock.currentTimeMillis) - seconds * 1_000
  const outcome = yield* Effect.flatMap(ProviderRouter, (routes) =>
    routes.image(
      model,
      { prompt: "a cat", resolution: "1K", shape: undefined, references: [] },
      new AttemptHistory(acme),
      since
    )
  ).pipe(Effect.match({ onFailure: ({ _tag }) => _tag, onSuccess: ({ route }) => route.id }), Effect.provide(router))
  return { outcome, asked }
})

describe("an image whose request arrives slowly", () => {
  for (const [seconds, expected] of [
    [0, { outcome: "i@a", asked: true }],
    [232, { outcome: "i@a", asked: true }],
    [233, { outcome: "TimedOut", asked: false }],
    [289, { outcome: "TimedOut", asked: false }],
    [400, { outcome: "TimedOut", asked: false }]
  ] as const) {
    it.effect(`is ${expected.asked ? "" : "not "}begun after ${seconds} s of 290`, () =>
      Effect.map(after(seconds), (seen) => assert.deepStrictEqual<typeof seen>(seen, expected))
    )
  }
})
