import { Effect } from "effect"
import type { Fetcher } from "../../services/media/Fetcher.ts"
import type { Provider } from "../../services/routing/Provider.ts"
import type { Upstream } from "../client/Upstream.ts"
import { adapters } from "../jobs/JobAdapter.ts"
import { written } from "./Input.ts"
import * as Predictions from "./Predictions.ts"

/** Replicate's predictions, and whatever speaks like it, with `Authorization: Bearer`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const predictions = yield* Predictions.make
  const both = yield* adapters({ name: "Replicate", authorization: Predictions.authorization, written, ...predictions })
  return { adapter: "replicate", ...both }
})
