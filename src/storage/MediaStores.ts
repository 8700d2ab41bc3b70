import { Effect, type Layer } from "effect"
import type { MediaStore } from "../services/media/MediaStore.ts"
import * as DiskStore from "./DiskStore.ts"
import type { S3Options } from "./S3Client.ts"
import * as S3Store from "./S3Store.ts"

export type MediaStoreOptions =
  | ({ readonly store: "disk" } & DiskStore.DiskOptions)
  | ({ readonly store: "s3" } & S3Options)

/** `reread` reads the options again. Of these, only the credentials are used. */
export const layer = (
  options: MediaStoreOptions,
  reread: Effect.Effect<MediaStoreOptions, { readonly message: string }> = Effect.succeed(options)
): Layer.Layer<MediaStore> =>
  options.store === "disk"
    ? DiskStore.layer(options)
    : S3Store.layer(
        options,
        undefined,
        Effect.map(reread, (now) => (now.store === "s3" ? now : options))
      )
