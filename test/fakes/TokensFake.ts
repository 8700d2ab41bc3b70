import { Effect, Layer } from "effect"
import { TokenCounter } from "../../src/services/chat/TokenCounter.ts"

/** Counts a token per character, and 100 for a prompt. */
export const layer = Layer.succeed(
  TokenCounter,
  TokenCounter.of({ count: (text) => Effect.succeed(text.length), prompt: () => Effect.succeed(100) })
)
