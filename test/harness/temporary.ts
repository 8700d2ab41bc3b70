import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
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

/** The same with these files in it. */
export const directoryWith = (files: Readonly<Record<string, string>>) =>
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
