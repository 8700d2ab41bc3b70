import { type FileHandle, open } from "node:fs/promises"
import { Data, Effect, Predicate } from "effect"
import { MediaStoreFailed } from "../services/media/MediaStore.ts"
import { errorCode } from "../services/runtime/System.ts"

class FileMissing extends Data.TaggedError("FileMissing") {}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Calls that have exceeded their time limit. Their number is limited, because each occupies one of Node's few threads. */
let hangingCalls = 0
const maxHangingCalls = 2
const timeoutMillis = 30_000

const isHandle = (value: unknown): value is FileHandle => Predicate.hasProperty(value, "close")

/** Rejects after the time limit, although the call itself continues, because file system calls cannot be cancelled. */
export const withTimeLimit = <A>(millis: number, work: () => Promise<A>): Promise<A> => {
  if (hangingCalls >= maxHangingCalls) return Promise.reject(new Error("the disk does not respond"))
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      hangingCalls += 1
      reject(new Error(`the disk did not respond within ${millis} ms`))
    }, millis)
    const end = () => {
      clearTimeout(timer)
      if (isLate) hangingCalls -= 1
    }
    const settle = (value: A) => {
      // Closes a late file handle, because the caller has given up and will not close it.
      if (isLate && isHandle(value)) void value.close().catch(() => {})
      resolve(value)
    }
    work().finally(end).then(settle, reject)
  })
}

export const runIo = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed> =>
  Effect.tryPromise({
    try: () => withTimeLimit(timeoutMillis, work),
    catch: (error) => new MediaStoreFailed({ detail: messageOf(error) })
  })

export const runIoOnFile = <A>(work: () => Promise<A>): Effect.Effect<A, MediaStoreFailed | FileMissing> =>
  Effect.tryPromise({
    try: () => withTimeLimit(timeoutMillis, work),
    catch: (error) =>
      errorCode(error) === "ENOENT" ? new FileMissing() : new MediaStoreFailed({ detail: messageOf(error) })
  })

/** Error codes of file systems that cannot sync a directory. */
const syncUnsupported: ReadonlySet<unknown> = new Set(["EINVAL", "ENOTSUP", "EISDIR", "EPERM"])

/** Ensures that files created in or removed from the directory stay so after a power loss. */
export const syncDirectory = (directory: string) =>
  runIo(async () => {
    const handle = await open(directory, "r")
    try {
      await handle.sync()
    } catch (error) {
      if (!syncUnsupported.has(errorCode(error))) throw error
    } finally {
      await handle.close()
    }
  })
