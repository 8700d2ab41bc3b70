import { Effect, Layer } from "effect"
import { Providers } from "../services/routing/Provider.ts"
import * as Anthropic from "./anthropic/index.ts"
import * as FalQueue from "./fal-queue/FalQueue.ts"
import * as Gemini from "./gemini/index.ts"
import * as OpenAiChat from "./openai-chat/index.ts"
import * as OpenAiImages from "./openai-images/OpenAiImages.ts"
import * as OpenAiResponses from "./openai-responses/index.ts"
import * as Replicate from "./replicate/Replicate.ts"
import * as Sandbox from "./sandbox/Sandbox.ts"

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
    (providers) => new Map(providers.map((provider) => [provider.adapter, provider]))
  )
)
