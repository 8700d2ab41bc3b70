import path from "node:path"
import { Effect, Layer } from "effect"
import * as S3Store from "../../src/storage/S3Store.ts"
import * as Bench from "../contracts/MediaBench.ts"
import { mediaStoreContract } from "../contracts/MediaStore.ts"
import * as S3 from "./S3.ts"

/** What the server keeps beside a file is not the store's. */
const nameOf = (file: string) => {
  if (file.split(path.sep)[0] === "._S3rver_uploads") return file
  return /^(.*)\._S3rver_object$/.exec(file)?.[1]
}

mediaStoreContract(
  "S3",
  Layer.unwrapScoped(
    Effect.map(S3.make, (server) =>
      Layer.merge(
        S3Store.layer({ ...server.options, publicUrl: `${server.url}/${S3.bucket}` }),
        Layer.succeed(Bench.MediaBench, Bench.make(server.directory, nameOf))
      )
    )
  )
)
