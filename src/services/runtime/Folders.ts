import { mkdir } from "node:fs/promises"
import path from "node:path"
import { errorCode } from "./System.ts"

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
 * Returns the topmost folder that it made; the mode is that of the last one. Node's own recursive call never ends where a
 * folder answers ENOENT to a new one, as `/proc` does.
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
