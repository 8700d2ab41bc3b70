import path from "node:path"
import { Effect, Layer } from "effect"
import { MediaBench } from "../contracts/MediaBench.ts"
import { mediaStoreContract } from "../contracts/MediaStore.ts"
import { MediaStoreFake } from "../fakes/MediaStoreFake.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const size = (files: ReadonlyMap<string, Uint8Array>) =>
  [...files.values()].reduce((sum, { length }) => sum + length, 0)

mediaStoreContract(
  "in memory",
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const fake = new MediaStoreFake()
      return Layer.merge(
        fake.layer,
        Layer.succeed(MediaBench, {
          directory: path.join(directory, "media"),
          files: Effect.sync(() => [...fake.files.keys()].toSorted()),
          bytes: Effect.sync(() => size(fake.files) + fake.unfinished)
        })
      )
    })
  )
)
