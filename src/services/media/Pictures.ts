import { Effect, Option } from "effect"
import type { ImageType, MeasuredPicture, Pixels } from "../../domain/Media.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import { view } from "./Base64.ts"
import { beginsMp4, measureGif, measureJpeg, measurePng, measureWebp } from "./PictureFormats.ts"

const formats: ReadonlyArray<readonly [ImageType, (bytes: Buffer) => EventLoop.Steps<Pixels | undefined>]> = [
  ["image/png", measurePng],
  ["image/jpeg", measureJpeg],
  ["image/webp", measureWebp],
  ["image/gif", measureGif]
]

const run = Effect.fnUntraced(function* <A>(steps: EventLoop.Steps<A>) {
  while (true) {
    const step = steps.next()
    if (step.done === true) return step.value
    yield* EventLoop.awaitSlice
  }
})

/** None unless a complete PNG, JPEG, WebP or GIF; decodes no pixel, so a false size allocates nothing. */
export const pictureOf = Effect.fnUntraced(function* (
  bytes: Uint8Array
): Effect.fn.Return<Option.Option<MeasuredPicture>> {
  const file = view(bytes)
  for (const [type, measure] of formats) {
    const size = yield* run(measure(file))
    if (size !== undefined) return Option.some({ type, bytes, ...size })
  }
  return Option.none()
})

export const isVideo = (first: Uint8Array): Effect.Effect<boolean> => Effect.sync(() => beginsMp4(view(first)))
