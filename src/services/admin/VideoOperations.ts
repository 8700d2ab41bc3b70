import { Effect } from "effect"
import { auditResource, operation } from "./Operation.ts"
import { VideoAdmin, VideoRecord } from "./VideoAdmin.ts"

const videos = auditResource({
  name: "videos",
  record: VideoRecord,
  find: (scope, id) => Effect.flatMap(VideoAdmin, ({ find }) => find(scope, id))
})

/** Tells the provider where possible. */
export const cancel = operation("Fail a video that is not over and give its hold back", (id: string) =>
  videos.change("cancel", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ cancel }) => cancel(scope, id)))
)

export const retry = operation("Look at a video that is not over now, instead of after its rest", (id: string) =>
  videos.change("retry", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ retry }) => retry(scope, id)))
)
