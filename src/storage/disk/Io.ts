import { open } from "node:fs/promises"
import { Data, Effect, Predicate } from "effect"
import { MediaStoreFailed } from "../../services/MediaStore.ts"

/** There is no such file, or no folder for it. */
export class NotThere extends Data.TaggedError("NotThere") {}

const codeOf = (error: unknown) => (Predicate.hasProperty(error, "code") ? error.code : undefined)

const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Work on the file system; what the system refuses is told in its own words. */
export const io = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed> =>
  Effect.tryPromise({ try: work, catch: (error) => new MediaStoreFailed({ detail: wordsOf(error) }) })

/** As `io`, for work on a file that may not be there. */
export const ioOn = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed | NotThere> =>
  Effect.tryPromise({
    try: work,
    catch: (error) => (codeOf(error) === "ENOENT" ? new NotThere() : new MediaStoreFailed({ detail: wordsOf(error) }))
  })

/** Some file systems know no such thing. */
const unsyncable: ReadonlySet<unknown> = new Set(["EINVAL", "ENOTSUP", "EISDIR", "EPERM"])

/** Makes names that came to or left a directory outlive a loss of power. */
export const syncDirectory = (directory: string) =>
  io(async () => {
    const handle = await open(directory, "r")
    try {
      await handle.sync()
    } catch (error) {
      if (!unsyncable.has(codeOf(error))) throw error
    } finally {
      await handle.close()
    }
  })
