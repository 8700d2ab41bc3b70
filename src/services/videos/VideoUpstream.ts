import { Effect, Either, Stream } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { isVideo } from "../media/Pictures.ts"
import { ProviderFailure, type VideoHandle } from "../routing/Provider.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import type { LeasedJob } from "./VideoState.ts"

const pollTimeout = "30 seconds"
const cancelTimeout = "10 seconds"
const longestDownloadMs = 900_000
const headerBytes = 4_096

export interface Render {
  readonly route: VideoRoute
  readonly handle: VideoHandle
}

const timeout = (detail: string) => new ProviderFailure({ class: "timeout", status: undefined, detail })
const noVideo = new ProviderFailure({ class: "retry", status: 200, detail: "the clip is no MP4 video" })

const requireMp4 = <E, R>(clip: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | ProviderFailure, R> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(clip)
      const chunks: Array<Uint8Array> = []
      let bytes = 0
      let hasEnded = false
      while (bytes < headerBytes && !hasEnded) {
        const more = yield* Effect.either(pull)
        if (Either.isRight(more)) {
          for (const chunk of more.right) {
            chunks.push(chunk)
            bytes += chunk.length
          }
        } else if (more.left._tag === "Some") return yield* Effect.fail(more.left.value)
        else hasEnded = true
      }
      const first = Buffer.concat(chunks)
      if (!(yield* isVideo(first.subarray(0, headerBytes)))) return yield* noVideo
      return Stream.concat(Stream.make(first), hasEnded ? Stream.empty : Stream.repeatEffectChunkOption(pull))
    })
  )

export const makeUpstream = Effect.gen(function* () {
  const router = yield* ProviderRouter
  const store = yield* MediaStore
  const failpoint = yield* Failpoint

  const poll = Effect.fnUntraced(function* ({ handle, route }: Render) {
    const adapter = yield* router.renderer(route)
    yield* failpoint.reach("video_polling")
    return yield* Effect.timeoutFail(adapter.poll(route, handle), {
      duration: pollTimeout,
      onTimeout: () => timeout(`no answer in ${pollTimeout}`)
    })
  })

  const download = Effect.fnUntraced(function* ({ handle, route }: Render, { leftMs }: LeasedJob) {
    const adapter = yield* router.renderer(route)
    const within = Math.min(Math.max(leftMs, 0), longestDownloadMs)
    const body = requireMp4(adapter.download(route, handle))
    return yield* Effect.timeoutFail(store.put({ type: "video/mp4", visibility: "public", body }), {
      duration: within,
      onTimeout: () => timeout(`the clip was not there within ${within} ms`)
    })
  })

  const cancel = ({ handle, route }: Render, id: string) =>
    Effect.flatMap(router.renderer(route), (adapter) => adapter.cancel?.(route, handle) ?? Effect.void).pipe(
      Effect.timeout(cancelTimeout),
      Effect.catchAllCause((cause) => Effect.logDebug(`The render of video ${id} could not be cancelled`, cause))
    )

  return { poll, download, cancel }
})
export type Upstream = Effect.Effect.Success<typeof makeUpstream>
