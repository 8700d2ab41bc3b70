import { Effect } from "effect"
import type { VideoNotFound } from "../../domain/Failure.ts"
import { VideoAdmin, type VideoJob, type VideoOver } from "../videos/VideoAdmin.ts"
import { Audit } from "./Audit.ts"
import { VideoRecord, videoRecord } from "./VideoRecord.ts"

const changeVideo = (
  action: string,
  id: string,
  run: (videos: typeof VideoAdmin.Service) => Effect.Effect<VideoJob, VideoNotFound | VideoOver>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const videos = yield* VideoAdmin
    return yield* change({
      action: `videos.${action}`,
      input: {},
      target: id,
      record: VideoRecord,
      find: (id) => Effect.map(videos.find(id), videoRecord),
      run: () => run(videos),
      recordOf: videoRecord,
      targetOf: (record) => record.id,
      orgOf: (record) => record.org
    })
  })

/** Fails it, gives its hold back, and tells the provider where possible. */
export const cancelVideo = (id: string) => changeVideo("cancel", id, ({ cancel }) => cancel(id))

/** Advances it now, instead of after its delay. */
export const retryVideo = (id: string) => changeVideo("retry", id, ({ retry }) => retry(id))
