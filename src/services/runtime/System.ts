import { existsSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { type Clock, Effect } from "effect"

/** Returns the code of an error of Node, its libraries or PostgreSQL, such as `ENOENT`; undefined if it has none. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/** Whether a process has this id. `EPERM` means that it belongs to another user. */
export const isProcessAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === "EPERM"
  }
}

const rootAbove = (directory: string): string => {
  const parent = path.dirname(directory)
  return existsSync(path.join(directory, "package.json")) || parent === directory ? directory : rootAbove(parent)
}

/** Returns the path of a file of the program, such as `catalog.yaml`. */
export const ownFile = (name: string): string =>
  path.join(rootAbove(path.dirname(fileURLToPath(import.meta.url))), name)

const makeFolder = async (folder: string, mode?: number): Promise<boolean> => {
  try {
    await mkdir(folder, mode)
    return true
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error
    return false
  }
}

/**
 * Creates a folder and its missing parents. Returns the topmost one that it created. Only the folder itself gets `mode`.
 * Replaces Node's recursive `mkdir`, which never returns if a folder such as `/proc` refuses a new one with ENOENT.
 */
export const makeFolders = async (folder: string, mode?: number): Promise<string | undefined> => {
  try {
    return (await makeFolder(folder, mode)) ? folder : undefined
  } catch (error) {
    const parent = path.dirname(folder)
    if (errorCode(error) !== "ENOENT" || parent === folder) throw error
    const top = await makeFolders(parent)
    return (await makeFolder(folder, mode)) ? (top ?? folder) : top
  }
}

/** Unlike `Clock.currentTimeMillis`, it does not jump when the machine's time is set. */
export const monotonicMillisOf = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000_000n)

export const monotonicMillis: Effect.Effect<number> = Effect.map(Effect.clock, monotonicMillisOf)
