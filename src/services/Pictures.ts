import { Effect, Option } from "effect"
import type { Picture } from "../domain/Media.ts"

/** The picture that some bytes are, none where they are no whole PNG, JPEG, WebP or GIF. */
export const pictureOf = (_bytes: Uint8Array): Effect.Effect<Option.Option<Picture>> => Effect.succeedNone

/** Whether a file that begins with these bytes, 4 KiB of them where there are as many, is an MP4 video. */
export const isVideo = (_first: Uint8Array): Effect.Effect<boolean> => Effect.succeed(false)
