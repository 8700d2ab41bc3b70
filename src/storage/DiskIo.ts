import { type FileHandle, open } from "node:fs/promises"
import { Data, Effect, Predicate } from "effect"
import { MediaStoreFailed } from "../services/media/MediaStore.ts"
import { errorCode } from "../services/runtime/System.ts"

export class FileMissing extends Data.TaggedError("FileMissing") {}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** Stuck calls occupy the few threads that Node has for files and DNS. */
let stuck = 0
const maxStuck = 2
const timeoutMillis = 30_000

const isHandle = (value: unknown): value is FileHandle => Predicate.hasProperty(value, "close")

/** Rejects at the timeout: no file system call can be cancelled. */
export const withTimeLimit = <A>(millis: number, work: () => Promise<A>): Promise<A> => {
  if (stuck >= maxStuck) return Promise.reject(new Error("the disk does not answer"))
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      stuck += 1
      reject(new Error(`the disk did not answer in ${millis} ms`))
    }, millis)
    const end = () => {
      clearTimeout(timer)
      if (isLate) stuck -= 1
    }
    const settle = (value: A) => {
      // The caller has timed out and will not close it.
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

/** Some file systems do not support it. */
const unsyncable: ReadonlySet<unknown> = new Set(["EINVAL", "ENOTSUP", "EISDIR", "EPERM"])

/** New and removed names then survive a loss of power. */
export const syncDirectory = (directory: string) =>
  runIo(async () => {
    const handle = await open(directory, "r")
    try {
      await handle.sync()
    } catch (error) {
      if (!unsyncable.has(errorCode(error))) throw error
    } finally {
      await handle.close()
    }
  })
