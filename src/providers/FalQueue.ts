import { Effect } from "effect"
import type { Fetcher } from "../services/media/Fetcher.ts"
import type { Provider } from "../services/routing/Provider.ts"
import { written } from "./fal-queue/Input.ts"
import * as Queue from "./fal-queue/Queue.ts"
import { adapters } from "./Jobs.ts"
import type { Upstream } from "./Upstream.ts"

/** fal.ai's queue, and whatever speaks like it, with `Authorization: Key`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const queue = yield* Queue.make
  const both = yield* adapters({ name: "FalQueue", authorization: Queue.authorization, written, ...queue })
  return { adapter: "fal-queue", ...both }
})
