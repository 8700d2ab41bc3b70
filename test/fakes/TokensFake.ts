import { Effect, Layer } from "effect"
import { Tokens } from "../../src/services/Tokens.ts"

/** A token is a character; a prompt has 100. */
export const layer = Layer.succeed(
  Tokens,
  Tokens.of({ count: (text) => Effect.succeed(text.length), prompt: () => Effect.succeed(100) })
)
