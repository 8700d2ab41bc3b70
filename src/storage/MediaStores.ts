import type { Layer } from "effect"
import type { MediaStore } from "../services/media/MediaStore.ts"
import * as DiskStore from "./DiskStore.ts"
import * as S3Store from "./S3Store.ts"
import type { S3Options } from "./s3/Client.ts"

export type MediaStoreOptions =
  | ({ readonly store: "disk" } & DiskStore.DiskOptions)
  | ({ readonly store: "s3" } & S3Options)

export const layer = (options: MediaStoreOptions): Layer.Layer<MediaStore> =>
  options.store === "disk" ? DiskStore.layer(options) : S3Store.layer(options)
