import { Effect } from "effect"
import type { Fetcher } from "../services/media/Fetcher.ts"
import type { Provider } from "../services/routing/Provider.ts"
import { adapters } from "./Jobs.ts"
import { written } from "./replicate/Input.ts"
import * as Predictions from "./replicate/Predictions.ts"
import type { Upstream } from "./Upstream.ts"

/** Replicate's predictions, and whatever speaks like it, with `Authorization: Bearer`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const predictions = yield* Predictions.make
  const both = yield* adapters({ name: "Replicate", authorization: Predictions.authorization, written, ...predictions })
  return { adapter: "replicate", ...both }
})
