import { Effect, Layer } from "effect"
import { Providers } from "../services/routing/Providers.ts"
import * as Anthropic from "./Anthropic.ts"
import * as FalQueue from "./FalQueue.ts"
import * as Gemini from "./Gemini.ts"
import * as OpenAiChat from "./OpenAiChat.ts"
import * as OpenAiImages from "./OpenAiImages.ts"
import * as OpenAiResponses from "./OpenAiResponses.ts"
import * as Replicate from "./Replicate.ts"
import * as Sandbox from "./Sandbox.ts"

/** Every adapter, by name. A new one is its own file and one line here. */
export const layer = Layer.effect(
  Providers,
  Effect.map(
    Effect.all([
      OpenAiChat.make,
      OpenAiResponses.make,
      OpenAiImages.make,
      Gemini.make,
      Anthropic.make,
      FalQueue.make,
      Replicate.make,
      Sandbox.make
    ]),
    (providers) => {
      return new Map(providers.map((provider) => [provider.adapter, provider]))
    }
  )
)
