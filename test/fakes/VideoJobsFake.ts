import { Effect, Layer } from "effect"
import { VideoNotFinished, VideoNotFound } from "../../src/domain/Failure.ts"
import type { OrgId } from "../../src/domain/Organization.ts"
import { clipPrice } from "../../src/domain/VideoRules.ts"
import type { VideoTask } from "../../src/services/videos/VideoCreation.ts"
import { type Video, type VideoFailure, VideoJobs } from "../../src/services/videos/VideoJobs.ts"

export interface Created {
  readonly video: Video
  readonly replayed: boolean
}

/** Video jobs that start and never progress unless the test changes them. */
export class VideoJobsFake {
  /** The tasks of all created videos, oldest first. */
  readonly jobs: Array<VideoTask> = []
  readonly #videos: Array<{ readonly org: OrgId; readonly video: Video }> = []
  readonly #deleted = new Set<string>()
  readonly #outcomes: Array<Effect.Effect<Created, VideoFailure>> = []

  /** The next creation returns or fails with this outcome, in place of a queued video. */
  script(outcome: Effect.Effect<Created, VideoFailure>): void {
    this.#outcomes.push(outcome)
  }

  /** Adds a video with these fields. It is the newest one. */
  put(org: OrgId, more: Partial<Video> = {}): Video {
    const count = String(this.#videos.length)
    const video: Video = {
      id: `vid_${count.padStart(32, "0")}`,
      model: "film",
      status: "queued",
      createdAt: 1_700_000_000 + this.#videos.length,
      completedAt: undefined,
      progress: 0,
      seconds: 8,
      url: undefined,
      error: undefined,
      charge: undefined,
      sandbox: false,
      ...more
    }
    this.#videos.push({ org, video })
    return video
  }

  readonly #latest = (org: OrgId) =>
    this.#videos
      .filter((one) => one.org === org && !this.#deleted.has(one.video.id))
      .map(({ video }) => video)
      .toReversed()

  readonly layer = Layer.succeed(VideoJobs, {
    create: (job) =>
      Effect.suspend(() => {
        this.jobs.push(job)
        const { model, record, seconds } = job
        const created = Effect.sync(() => this.put(record.summary.caller.org, { model: model.id, seconds }))
        return this.#outcomes.shift() ?? Effect.map(created, (video) => ({ video, replayed: false }))
      }),
    replay: () => Effect.succeedNone,
    find: (org, id) =>
      Effect.suspend(() => {
        const video = this.#latest(org).find((one) => one.id === id)
        return video === undefined ? new VideoNotFound() : Effect.succeed(video)
      }),
    /** Returns one more than a page, from which the caller detects a further page. */
    list: (org, limit, { after, order } = { after: undefined, order: "desc" }) =>
      Effect.suspend(() => {
        if (!(Number.isInteger(limit) && limit >= 2 && limit <= 101)) return Effect.dieMessage(`a list of ${limit}`)
        const all = order === "desc" ? this.#latest(org) : this.#latest(org).toReversed()
        const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1
        return after !== undefined && start === 0
          ? new VideoNotFound()
          : Effect.succeed(all.slice(start, start + limit))
      }),
    delete: (org, id) =>
      Effect.suspend((): Effect.Effect<void, VideoNotFound | VideoNotFinished> => {
        const found = this.#latest(org).find((one) => one.id === id)
        if (found === undefined) return new VideoNotFound()
        if (found.completedAt === undefined) return new VideoNotFinished()
        this.#deleted.add(id)
        return Effect.void
      }),
    quote: ({ model, seconds }) => Effect.succeed(clipPrice(model.pricing, seconds)),
    prune: () => Effect.succeed(0)
  })
}
