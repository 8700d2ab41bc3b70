import { Effect, Layer } from "effect"
import { TokenCounter } from "../../src/services/chat/TokenCounter.ts"

/** A token is a character; a prompt has 100. */
export const layer = Layer.succeed(
  TokenCounter,
  TokenCounter.of({ count: (text) => Effect.succeed(text.length), prompt: () => Effect.succeed(100) })
)
