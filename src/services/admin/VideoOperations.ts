import { Effect } from "effect"
import { auditResource, operation } from "./AdminOperation.ts"
import { VideoAdmin, VideoRecord } from "./VideoAdmin.ts"

const videos = auditResource({
  name: "videos",
  record: VideoRecord,
  find: (scope, id) => Effect.flatMap(VideoAdmin, ({ find }) => find(scope, id))
})

export const cancel = operation("Cancel an unfinished video and release its hold", (id: string) =>
  videos.change("cancel", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ cancel }) => cancel(scope, id)))
)

export const retry = operation("Process an unfinished video now instead of at its next scheduled time", (id: string) =>
  videos.change("retry", id, {}, (scope, id) => Effect.flatMap(VideoAdmin, ({ retry }) => retry(scope, id)))
)
