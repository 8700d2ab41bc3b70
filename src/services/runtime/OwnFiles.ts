import { existsSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

const rootAbove = (directory: string): string => {
  const parent = path.dirname(directory)
  return existsSync(path.join(directory, "package.json")) || parent === directory ? directory : rootAbove(parent)
}

export const ownFile = (name: string): string =>
  path.join(rootAbove(path.dirname(fileURLToPath(import.meta.url))), name)
