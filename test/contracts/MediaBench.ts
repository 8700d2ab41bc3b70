import { readdir, stat } from "node:fs/promises"
import path from "node:path"
import { Context, Effect } from "effect"

/** A look at what a store has, from behind. */
export class MediaBench extends Context.Tag("test/MediaBench")<
  MediaBench,
  {
    /** The store's root; tests put a file beside it that no name may reach. */
    readonly directory: string
    /** Every file of the store, unfinished ones too: names of media where they are whole. */
    readonly files: Effect.Effect<ReadonlyArray<string>>
    /** Bytes that the store has taken so far. */
    readonly bytes: Effect.Effect<number>
  }
>() {}

export const make = (directory: string, nameOf: (file: string) => string | undefined) => {
  const all = Effect.promise(async () => {
    const found = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => [])
    return found.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
  })
  const size = (file: string) =>
    stat(file).then(
      (found) => found.size,
      () => 0
    )
  return MediaBench.of({
    directory,
    files: Effect.map(all, (files) => files.flatMap((file) => nameOf(path.relative(directory, file)) ?? []).toSorted()),
    bytes: Effect.flatMap(all, (files) =>
      Effect.promise(async () => (await Promise.all(files.map(size))).reduce((sum, one) => sum + one, 0))
    )
  })
}
