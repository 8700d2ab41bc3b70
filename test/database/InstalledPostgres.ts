import { chmodSync, existsSync } from "node:fs"
import path from "node:path"
import { Effect, Layer, Redacted, Schedule } from "effect"
import * as Pg from "pg"
import { Database } from "../../src/database/Database.ts"
import { prepareSocket } from "../../src/database/Embedded.ts"
import * as Cluster from "../../src/database/embedded/Cluster.ts"
import * as Programs from "../../src/database/embedded/Programs.ts"
import { Migrations } from "../../src/database/Migrations.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

const directoryOf = (major: number) => `/usr/lib/postgresql/${major}/bin`

/** Where Debian's packages put it. */
export const isInstalled = (major: number): boolean => existsSync(path.join(directoryOf(major), "postgres"))

const connect = (url: string) =>
  Effect.tryPromise(async () => {
    const client = new Pg.Client(url)
    client.on("error", () => {})
    await client.connect()
    await client.end()
  })

/** The URL of an empty database on a server of this version, which ends with the scope. */
export const emptyUrl = Effect.fnUntraced(function* (version: number) {
  const binaries = {
    initdb: path.join(directoryOf(version), "initdb"),
    postgres: path.join(directoryOf(version), "postgres")
  }
  const directory = yield* temporaryDirectory
  // The server runs as another user where the tests run as root.
  chmodSync(directory, 0o755)
  const { home, major, runner } = yield* Programs.chooseRunner(path.join(directory, "postgres"), binaries)
  const data = yield* Cluster.ensure({ home, binaries, runner, major, name: "test" })
  const host = yield* prepareSocket(home, runner)
  const settings = ["listen_addresses=", `unix_socket_directories=${host}`, "fsync=off", "synchronous_commit=off"]
  const options = settings.flatMap((setting) => ["-c", setting])
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      Programs.start(runner, [binaries.postgres, "-D", data, ...options], { cwd: home, stdio: "ignore" })
    ),
    (server) =>
      Effect.async<void>((resume) => {
        server.once("exit", () => resume(Effect.void))
        server.kill("SIGINT")
      })
  )
  const url = `postgres://${Cluster.user}@localhost/${Cluster.database}?host=${encodeURIComponent(host)}`
  yield* Effect.retry(connect(url), { schedule: Schedule.spaced("50 millis"), times: 200 })
  return url
})

/** `SqlClient` and `Database` over a migrated database there. */
export const layer = (version: number) =>
  Layer.unwrapScoped(
    Effect.map(emptyUrl(version), (url) =>
      Layer.effectDiscard(Effect.flatMap(Migrations, ({ migrate }) => migrate)).pipe(
        Layer.provide(Migrations.layer),
        Layer.provideMerge(Database.layerUrl(Redacted.make(url))),
        Layer.orDie
      )
    )
  )
