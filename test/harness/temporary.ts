import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect } from "effect"

const name = "gateway-test-"

/** Where temporary directories go; the process id lets a later run find what a killed one left. */
export const root = realpathSync(tmpdir())

/** For `mkdtemp`. */
export const prefix = path.join(root, `${name}${process.pid}-`)

/** An empty directory, removed with the scope. */
export const temporaryDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(prefix)),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
)

/** The process that made a directory of this name, if a test did. */
export const makerOf = (directory: string) => {
  const pid = new RegExp(`^${name}(\\d+)-`).exec(directory)?.[1]
  return pid === undefined ? undefined : Number(pid)
}
