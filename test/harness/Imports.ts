import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** Paths from the root of the project, and what is in the files. */
export type Sources = ReadonlyMap<string, string>

export interface Import {
  readonly file: string
  readonly specifier: string
  /** A path from the root of the project, or the name of a package; `node:` for those of Node itself. */
  readonly target: string
  readonly isType: boolean
}

export const readSources = (folder: string): Sources =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => path.posix.join(folder, name))
      .map((file) => [file, readFileSync(file, "utf8")])
  )

/** Imports and exports of other modules, also lazy ones and those of types. */
const statement =
  /^(?:import|export)\s+(type\s)?\s*(?:[\w*{][^"';`]*?\s)?from\s+"([^"]+)"|^import\s+"([^"]+)"|\b(typeof\s+)?import\(\s*"([^"]+)"/gm

const targetOf = (file: string, specifier: string): string => {
  if (specifier.startsWith(".")) return path.posix.join(path.posix.dirname(file), specifier)
  if (specifier.startsWith("node:")) return "node:"
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")
}

export const importsOf = (sources: Sources): ReadonlyArray<Import> =>
  [...sources].flatMap(([file, text]) =>
    Array.from(text.matchAll(statement), ([, type, from, bare, typeOf, lazy]) => {
      const specifier = from ?? bare ?? lazy ?? ""
      return {
        file,
        specifier,
        target: targetOf(file, specifier),
        isType: type !== undefined || typeOf !== undefined
      }
    })
  )
