import { Context, type Duration, Effect, Layer, Stream } from "effect"
import { MediaStore } from "../../src/services/media/MediaStore.ts"
import * as S3Store from "../../src/storage/S3Store.ts"
import * as Bench from "../contracts/MediaBench.ts"
import * as S3 from "./S3.ts"

const mib = 1024 * 1024

export const png = { type: "image/png", visibility: "public", body: Buffer.from("picture") } as const
export const mp4 = { type: "video/mp4", visibility: "public" } as const
/** Three parts of an upload. */
export const videoBytes = 17 * mib
export const video = Stream.rechunk(Stream.repeatEffect(Effect.succeed(new Uint8Array(mib))), 1).pipe(Stream.take(17))

export const opened = (
  server: S3.S3Server,
  options: Partial<S3.S3Server["options"]> = {},
  request: Duration.DurationInput = "20 seconds",
  reread?: Parameters<typeof S3Store.layer>[2]
) =>
  Layer.build(
    S3Store.layer(
      { ...server.options, ...options, publicUrl: `${server.url}/${S3.bucket}` },
      { request, pause: "1 millis" },
      reread
    )
  ).pipe(Effect.map(Context.get(MediaStore)))

/** Every file behind the store, unfinished ones too. */
export const stored = ({ directory }: S3.S3Server) => Bench.make(directory, (file) => file).files

/** What was asked, without what differs from one time to the next. */
export const lines = ({ asked }: S3.S3Server) =>
  asked.map(({ line }) => line.replace(/[\w-]{32}\.\w+/, "NAME").replace(/(uploadId=)\w+/, "$1ID"))
