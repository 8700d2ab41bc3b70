import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Clock, Duration, Effect, Schema } from "effect"

const rootAbove = (directory: string): string => {
  const parent = path.dirname(directory)
  return existsSync(path.join(directory, "package.json")) || parent === directory ? directory : rootAbove(parent)
}

export const ownFile = (name: string): string =>
  path.join(rootAbove(path.dirname(fileURLToPath(import.meta.url))), name)

const decodeRecord = Schema.decodeUnknownSync(Schema.parseJson(Schema.Struct({ files: Schema.Array(Schema.String) })))

/** A gateway loads files of its own build late, so it has this long to be restarted. */
const keepReplaced = Duration.days(7)

/**
 * Removes the files in `dist` that a build replaced at least seven days ago. A build marks the files it replaces by
 * their time. A directory that is read-only or that no build made stays as it is.
 */
export const removeReplacedFiles = (dist = ownFile("dist")): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.try(() => {
      const current = new Set(decodeRecord(readFileSync(path.join(dist, "gateway/build.json"), "utf8")).files)
      for (const folder of ["gateway", "console"]) {
        for (const name of readdirSync(path.join(dist, folder))) {
          const file = path.join(dist, folder, name)
          const isOld = now - statSync(file).mtimeMs >= Duration.toMillis(keepReplaced)
          if (isOld && !current.has(path.join(folder, name))) rmSync(file, { force: true })
        }
      }
    })
  ).pipe(Effect.ignoreLogged)
