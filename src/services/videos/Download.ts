import { Effect, Either, Stream } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { isVideo } from "../media/Pictures.ts"
import { ProviderFailure, type VideoAdapter } from "../routing/Provider.ts"
import type { LeasedJob } from "./VideoSql.ts"

/** Milliseconds for handing a clip over to the store. */
const longestMs = 900_000
/** Enough of a file to tell what it is. */
const tellingBytes = 4_096

const noVideo = new ProviderFailure({ class: "retry", status: 200, detail: "the clip is no MP4 video" })

const tooSlow = (ms: number) =>
  new ProviderFailure({ class: "timeout", status: undefined, detail: `the clip was not there within ${ms} ms` })

/** Fails where the stream turns out not to be a video; what has been read to tell is not lost. */
const checked = <E, R>(clip: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ProviderFailure, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(clip)
      const chunks: Array<Uint8Array> = []
      let bytes = 0
      let ended = false
      while (bytes < tellingBytes && !ended) {
        const more = yield* Effect.either(pull)
        if (Either.isRight(more)) {
          for (const chunk of more.right) {
            chunks.push(chunk)
            bytes += chunk.length
          }
        } else if (more.left._tag === "Some") return yield* Effect.fail(more.left.value)
        else ended = true
      }
      const first = Buffer.concat(chunks)
      if (!(yield* isVideo(first.subarray(0, tellingBytes)))) return yield* noVideo
      const rest = ended ? Stream.empty : Stream.repeatEffectChunkOption(pull)
      return Stream.concat(Stream.make(first), rest)
    })
  )

/** Takes a clip from its provider into the store, and answers its name there. */
export const make = Effect.map(
  MediaStore,
  (store) => (job: LeasedJob, renderer: VideoAdapter, route: VideoRoute, handle: string) => {
    const within = Math.min(Math.max(job.leftMs, 0), longestMs)
    return store
      .put({ type: "video/mp4", visibility: "public", body: checked(renderer.download(route, handle)) })
      .pipe(Effect.timeoutFail({ duration: within, onTimeout: () => tooSlow(within) }))
  }
)
