import { existsSync, readFileSync, rmSync, statSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Clock, Duration, Effect, Schema } from "effect"

const rootAbove = (directory: string): string => {
  const parent = path.dirname(directory)
  return existsSync(path.join(directory, "package.json")) || parent === directory ? directory : rootAbove(parent)
}

export const ownFile = (name: string): string =>
  path.join(rootAbove(path.dirname(fileURLToPath(import.meta.url))), name)

/** A build lists the files of earlier builds in this directory with the time when it replaced them. */
const BuildRecord = Schema.Struct({
  inode: Schema.Number,
  files: Schema.Array(Schema.String),
  replaced: Schema.Record({ key: Schema.String, value: Schema.Number })
})

const decodeRecord = Schema.decodeUnknownSync(Schema.parseJson(BuildRecord))

/** A gateway loads files of its own build late, so it has this long to be restarted. */
const keepReplaced = Duration.days(7)

const findExpired = (dist: string, now: number): ReadonlyArray<string> => {
  const { files, inode, replaced } = decodeRecord(readFileSync(path.join(dist, "gateway/build.json"), "utf8"))
  // A copy of `dist` is younger than the times in its record.
  if (inode !== statSync(dist).ino) return []
  const isExpired = (time: number) => now - time >= Duration.toMillis(keepReplaced)
  return Object.entries(replaced)
    .filter(([name, time]) => isExpired(time) && !files.includes(name))
    .map(([name]) => path.join(dist, name))
}

/**
 * Removes the files in `dist` that a build in the same directory replaced at least seven days ago. Without a readable
 * record of a build, nothing is removed. Logs one warning if files cannot be removed.
 */
export const removeReplacedFiles = (dist = ownFile("dist")): Effect.Effect<void> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const expired = yield* Effect.orElseSucceed(
      Effect.try(() => findExpired(dist, now)),
      () => []
    )
    const remove = (file: string) =>
      Effect.try({ try: () => rmSync(file, { force: true }), catch: (error) => ({ file, error }) })
    const [[failure, ...others]] = yield* Effect.partition(expired, remove)
    if (failure === undefined) return
    const { error, file } = failure
    const reason = error instanceof Error ? error.message : String(error)
    const more = others.length === 0 ? "" : ` and ${others.length} more`
    yield* Effect.logWarning(`Could not remove ${file}${more}: ${reason}. A build replaced it over 7 days ago.`)
  })
