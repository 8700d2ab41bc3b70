import { Effect } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import type { VideoHandle } from "../routing/Provider.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"

const within = "10 seconds"

/** Tells a provider that nobody waits for a render any more, where it can be told; once, whatever comes of it. */
export const make = Effect.map(
  ProviderRouter,
  (router) => (id: string, route: VideoRoute, handle: VideoHandle) =>
    Effect.flatMap(router.renderer(route), ({ cancel }) => cancel?.(route, handle) ?? Effect.void).pipe(
      Effect.timeout(within),
      Effect.catchAllCause((cause) => Effect.logDebug(`The render of video ${id} could not be cancelled`, cause))
    )
)
