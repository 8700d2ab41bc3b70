import { existsSync } from "node:fs"
import { cp, symlink } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

export const root = fileURLToPath(new URL("../../", import.meta.url))

/** Makes the directory a checkout that builds and starts on its own: its `dist` and `.data` are not the project's. */
export const checkOutInto = (directory: string) =>
  Effect.promise(async () => {
    for (const name of ["package.json", "build.mjs", "bin"]) {
      await cp(path.join(root, name), path.join(directory, name), { recursive: true })
    }
    for (const name of ["catalog.yaml", "docs", "migrations", "node_modules", "src"]) {
      const link = path.join(directory, name)
      if (!existsSync(link)) await symlink(path.join(root, name), link)
    }
  })
