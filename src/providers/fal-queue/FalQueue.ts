import { Effect } from "effect"
import type { Fetcher } from "../../services/media/Fetcher.ts"
import type { Provider } from "../../services/routing/Provider.ts"
import type { Upstream } from "../client/Upstream.ts"
import { adapters } from "../jobs/JobAdapter.ts"
import { written } from "./Input.ts"
import * as Queue from "./Queue.ts"

/** fal.ai's queue, and whatever speaks like it, with `Authorization: Key`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const queue = yield* Queue.make
  const both = yield* adapters({ name: "FalQueue", authorization: Queue.authorization, written, ...queue })
  return { adapter: "fal-queue", ...both }
})
