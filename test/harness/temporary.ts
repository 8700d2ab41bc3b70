/** Temporary directories, which are removed with their scope. Their names contain the id of the process that created them. */

import { mkdirSync, mkdtempSync, realpathSync, statfsSync, writeFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect } from "effect"

const name = "gateway-test-"

const isRoomy = (directory: string) => {
  try {
    const { bavail, bsize } = statfsSync(directory)
    return bavail * bsize >= 4 * 1024 ** 3
  } catch {
    return false
  }
}

/**
 * The parent of temporary directories. It is in memory if there is room, where creating and deleting the files of a
 * database takes a quarter of the time. A campaign that would fill the memory sets `TEST_DIRECTORY`. With the process
 * id in the name, a later run finds the directories of killed processes.
 */
export const root = realpathSync(process.env["TEST_DIRECTORY"] || (isRoomy("/dev/shm") ? "/dev/shm" : tmpdir()))

/** The prefix for `mkdtemp`. */
export const prefix = path.join(root, `${name}${process.pid}-`)

/** The directory of bundled programs that test files share. It is inside the project, so the programs find its packages. */
export const bundles = path.resolve("node_modules/.cache/gateway-test")

/** Like `prefix`, but in a directory from which programs can be executed. A directory in memory may forbid that. */
export const programPrefix = path.join(bundles, path.basename(prefix))

/** Returns the path of a bundle of this run. The parent process is the same for all processes that run tests. */
export const bundleOf = (source: string): string => path.join(bundles, `${name}${process.ppid}-${source}.js`)

/** Creates an empty directory, which is removed with the scope. */
export const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(prefix)),
  // Retries, because an embedded database ends shortly after the last process that uses it.
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
)

/** Creates a temporary directory with these files. */
export const directoryWith = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.tap(temporaryDirectory, (directory) =>
    Effect.sync(() => {
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
        writeFileSync(path.join(directory, name), text)
      }
    })
  )

/** Returns the id of the process that created the directory, if a test did. */
export const makerOf = (directory: string) => {
  const pid = new RegExp(`^${name}(\\d+)-`).exec(directory)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

/** Whether a process with this id exists. A zombie process counts. */
export const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
