/** Temporary directories, which go with their scope; what a killed process left can be told by its name. */

import { mkdtempSync, realpathSync, statfsSync, writeFileSync } from "node:fs"
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
 * Where temporary directories go: to memory if there is room, where a database's hundreds of files are made and removed
 * in a quarter of the time; a campaign whose rows would fill it names another in `TEST_DIRECTORY`. The process id lets a
 * later run find what a killed one left.
 */
export const root = realpathSync(process.env["TEST_DIRECTORY"] || (isRoomy("/dev/shm") ? "/dev/shm" : tmpdir()))

/** For `mkdtemp`. */
export const prefix = path.join(root, `${name}${process.pid}-`)

/** Where programs are bundled that test files share: inside the project, to find its packages. */
export const bundles = path.resolve("node_modules/.cache/gateway-test")

/** As `prefix`, where programs may run, which a directory in memory may forbid. */
export const programPrefix = path.join(bundles, path.basename(prefix))

/** The bundle of that name of this run, whose process is the parent of all that run tests. */
export const bundleOf = (source: string): string => path.join(bundles, `${name}${process.ppid}-${source}.js`)

/** An empty directory, removed with the scope. */
export const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(prefix)),
  // An embedded database of its own ends a moment after its last process.
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
)

/** The same with these files in it. */
export const directoryWith = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.tap(temporaryDirectory, (directory) =>
    Effect.sync(() => {
      for (const [name, text] of Object.entries(files)) writeFileSync(path.join(directory, name), text)
    })
  )

/** The process that made a directory of this name, if a test did. */
export const makerOf = (directory: string) => {
  const pid = new RegExp(`^${name}(\\d+)-`).exec(directory)?.[1]
  return pid === undefined ? undefined : Number(pid)
}

/** Whether a process runs (a zombie counts). */
export const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}
