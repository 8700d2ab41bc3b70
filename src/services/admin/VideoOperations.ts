import { Effect } from "effect"
import { VideoAdmin } from "../videos/VideoAdmin.ts"
import { auditResource, operation } from "./Operation.ts"
import { VideoRecord, videoRecord } from "./VideoRecord.ts"

const videos = auditResource({
  name: "videos",
  record: VideoRecord,
  find: (id) => Effect.flatMap(VideoAdmin, ({ find }) => Effect.map(find(id), videoRecord))
})

/** Tells the provider where possible. */
export const cancel = operation("Fail a video that is not over and give its hold back", (id: string) =>
  videos.changeWith("cancel", id, {}, (id) => Effect.flatMap(VideoAdmin, ({ cancel }) => cancel(id)), videoRecord)
)

export const retry = operation("Look at a video that is not over now, instead of after its rest", (id: string) =>
  videos.changeWith("retry", id, {}, (id) => Effect.flatMap(VideoAdmin, ({ retry }) => retry(id)), videoRecord)
)
