import { Effect, Exit, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { TokenCounter } from "../../../src/services/chat/TokenCounter.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { answer, hangs, model, ProviderFake, request, route } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { openChat } from "./ChatBench.ts"

const longUsage = { prompt: 7, completion: 12, cached: 0, cacheWrite: 0, reasoning: 0 }
const tooLong = new ProviderFake().on(route("a"), {
  ...hangs,
  complete: Effect.succeed({ ...answer("twelve chars"), usage: longUsage })
})

const { pricing, ...rest } = model(route("a"))
const perToken = NanoUsd(1_000_000n)
const priced = { ...rest, pricing: { ...pricing, prompt: perToken, completion: perToken } }

const chatOver = (count: typeof TokenCounter.Service.count) =>
  ChatCompletions.layer.pipe(
    Layer.provide(Layer.mock(ReferenceImages, {})),
    Layer.provide(Layer.provide(ProviderRouter.layer(), tooLong.layer)),
    Layer.provide(Layer.succeed(TokenCounter, TokenCounter.of({ count, prompt: () => Effect.succeed(100) }))),
    Layer.provideMerge(LedgerFake.layer)
  )

const asked = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const ledger = yield* Ledger
  const { org, record } = yield* openChat(1_000_000_000n)
  const exit = yield* Effect.exit(chat.complete({ model: priced, request: request({ maxTokens: 6 }), record }))
  return { exit, spent: 1_000_000_000n - (yield* ledger.balance(org)).balance }
})

describe("an answer beyond its cap", () => {
  it.effect("is cut to the cap and charged for no more", () =>
    Effect.gen(function* () {
      const { exit, spent } = yield* asked
      assert.isTrue(Exit.isSuccess(exit) && exit.value.answer.content === "twelve" && exit.value.usage.completion === 6)
      assert.strictEqual(spent, 7n + 6n)
    }).pipe(Effect.provide(chatOver((text) => Effect.succeed(text.length))))
  )

  it.effect("costs nothing when it cannot be cut", () =>
    Effect.gen(function* () {
      const { exit, spent } = yield* asked
      assert.isTrue(Exit.isFailure(exit))
      assert.strictEqual(spent, 0n)
    }).pipe(Effect.provide(chatOver(() => Effect.dieMessage("this text cannot be counted"))))
  )
})
