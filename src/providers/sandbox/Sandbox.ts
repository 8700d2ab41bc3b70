/**
 * The offline provider. Its answers depend on nothing but the request; what
 * they are, and the switches that make them fail, is in docs/getting-started.md.
 */
import { Effect } from "effect"
import { TokenCounter } from "../../services/chat/TokenCounter.ts"
import type { Provider } from "../../services/routing/Provider.ts"
import * as Chat from "./Chat.ts"
import * as Image from "./Image.ts"
import * as Video from "./Video.ts"

export const make: Effect.Effect<Provider, never, TokenCounter> = Effect.map(TokenCounter, (tokens) => ({
  adapter: "sandbox",
  chat: Chat.make(tokens),
  image: Image.make(),
  video: Video.make()
}))
