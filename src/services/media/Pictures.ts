import { Effect, Option } from "effect"
import type { ImageType, Picture } from "../../domain/Media.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import { view } from "./Base64.ts"
import { beginsMp4, isGif, isJpeg, isPng, isWebp } from "./PictureFormats.ts"

const formats: ReadonlyArray<readonly [ImageType, (bytes: Buffer) => EventLoop.Steps<boolean>]> = [
  ["image/png", isPng],
  ["image/jpeg", isJpeg],
  ["image/webp", isWebp],
  ["image/gif", isGif]
]

const run = Effect.fnUntraced(function* <A>(steps: EventLoop.Steps<A>) {
  while (true) {
    const step = steps.next()
    if (step.done === true) return step.value
    yield* EventLoop.awaitSlice
  }
})

/** None unless a complete PNG, JPEG, WebP or GIF; decodes no pixel, so a false size allocates nothing. */
export const pictureOf = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<Option.Option<Picture>> {
  const file = view(bytes)
  for (const [type, isWhole] of formats) if (yield* run(isWhole(file))) return Option.some({ type, bytes })
  return Option.none()
})

export const isVideo = (first: Uint8Array): Effect.Effect<boolean> => Effect.sync(() => beginsMp4(view(first)))
