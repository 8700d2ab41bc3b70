import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { isProcessAlive } from "../../services/runtime/System.ts"
import { type Binaries, EmbeddedUnavailable } from "./Binaries.ts"
import { perform, type Runner } from "./Runner.ts"

export const user = "postgres"
export const database = "gateway"

export const dataIn = (home: string) => path.join(home, "data")

const sweepAbandoned = (home: string) => {
  for (const name of readdirSync(home)) {
    const pid = /^initdb-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isProcessAlive(Number(pid)))
      rmSync(path.join(home, name), { recursive: true, force: true })
  }
}

const flags = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions", `--username=${user}`]

const build = (draft: string, { initdb, postgres }: Binaries, runner: Runner) => {
  const home = path.dirname(draft)
  return Effect.zipRight(
    perform(runner, home, [initdb, "-D", draft, ...flags]),
    perform(runner, home, [postgres, "--single", "-D", draft, "postgres"], `CREATE DATABASE ${database}\n`)
  )
}

/** Moved into place complete: one of several first starters wins, and a kill leaves nothing half made. */
export const ensure = Effect.fn("Cluster.ensure")(function* (options: {
  readonly home: string
  readonly binaries: Binaries
  readonly runner: Runner
  readonly major: string
  readonly name: string
}) {
  const { binaries, home, major, name, runner } = options
  const data = dataIn(home)
  if (!existsSync(data)) {
    sweepAbandoned(home)
    const draft = path.join(home, `initdb-${process.pid}-${name}`)
    yield* build(draft, binaries, runner).pipe(
      Effect.zipRight(
        Effect.try(() => renameSync(draft, data)).pipe(
          Effect.catchIf(
            () => existsSync(data),
            () => Effect.void
          ),
          Effect.mapError((error) => EmbeddedUnavailable.because(String(error)))
        )
      ),
      Effect.ensuring(Effect.sync(() => rmSync(draft, { recursive: true, force: true })))
    )
  }
  const found = yield* Effect.try({
    try: () => readFileSync(path.join(data, "PG_VERSION"), "utf8").trim(),
    catch: () => EmbeddedUnavailable.because(`${data} is not a PostgreSQL data directory`)
  })
  if (found !== major) {
    return yield* EmbeddedUnavailable.because(
      `${data} holds data of PostgreSQL ${found}, but this program brings PostgreSQL ${major}`
    )
  }
  return data
})
