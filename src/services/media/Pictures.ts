import { Effect, Option } from "effect"
import type { ImageType, Picture } from "../../domain/Media.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import * as Gif from "./pictures/Gif.ts"
import * as Jpeg from "./pictures/Jpeg.ts"
import * as Mp4 from "./pictures/Mp4.ts"
import * as Png from "./pictures/Png.ts"
import type { Walk } from "./pictures/Walk.ts"
import * as WebP from "./pictures/WebP.ts"

const formats: ReadonlyArray<readonly [ImageType, (bytes: Buffer) => Walk<boolean>]> = [
  ["image/png", Png.isWhole],
  ["image/jpeg", Jpeg.isWhole],
  ["image/webp", WebP.isWhole],
  ["image/gif", Gif.isWhole]
]

/** The same memory: nothing is copied. */
const view = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const walked = Effect.fnUntraced(function* <A>(walk: Walk<A>) {
  while (true) {
    const step = walk.next()
    if (step.done === true) return step.value
    yield* EventLoop.slice
  }
})

/**
 * The picture that some bytes are, none where they are no whole PNG, JPEG, WebP or GIF. Follows the file's structure
 * from its first byte to its end mark and decodes no pixel: what a file claims of itself allocates nothing.
 */
export const pictureOf = Effect.fnUntraced(function* (bytes: Uint8Array): Effect.fn.Return<Option.Option<Picture>> {
  const file = view(bytes)
  for (const [type, isWhole] of formats) if (yield* walked(isWhole(file))) return Option.some({ type, bytes })
  return Option.none()
})

/** Whether a file that begins with these bytes, 4 KiB of them where there are as many, is an MP4 video. */
export const isVideo = (first: Uint8Array): Effect.Effect<boolean> => Effect.sync(() => Mp4.begins(view(first)))
