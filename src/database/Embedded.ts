import { randomUUID } from "node:crypto"
import { existsSync, rmSync } from "node:fs"
import path from "node:path"
import { Context, Duration, Effect, Layer, Predicate, Schedule } from "effect"
import * as Pg from "pg"
import { errorCode } from "../services/runtime/System.ts"
import * as Cluster from "./embedded/Cluster.ts"
import * as Access from "./embedded/ClusterAccess.ts"
import { chooseRunner, EmbeddedUnavailable, locateBinaries } from "./embedded/Programs.ts"
import * as Supervisor from "./embedded/Supervisor.ts"

/** A socket address. It needs no password, because the kernel identifies the user of a socket. */
interface Address {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

interface Options {
  readonly dataDir: string
  readonly settings?: Readonly<Record<string, string>>
  readonly startTimeout?: Duration.DurationInput
}

/**
 * The database server of a data directory. The first process starts it, and the last one stops it. It is restarted after a
 * crash.
 */
export class Embedded extends Context.Tag("gateway/Embedded")<Embedded, Address>() {
  static readonly layer = (options: Options): Layer.Layer<Embedded, EmbeddedUnavailable> =>
    Layer.scoped(Embedded, attach(options))

  static readonly exists = (dataDir: string): boolean => existsSync(Cluster.dataIn(homeIn(dataDir)))
}

const homeIn = (dataDir: string) => path.resolve(dataDir, "postgres")

const settingsFor = (socketDirectory: string) => ({
  listen_addresses: "",
  unix_socket_directories: `"${socketDirectory.replaceAll('"', '""')}"`,
  unix_socket_permissions: "0700",
  port: "5432",
  // Enough for 32 workers with up to 11 connections each, plus commands.
  max_connections: "400",
  shared_buffers: "64MB",
  max_wal_size: "256MB",
  min_wal_size: "64MB",
  wal_level: "minimal",
  max_wal_senders: "0",
  huge_pages: "off",
  jit: "off",
  client_connection_check_interval: "1s",
  fsync: "on",
  timezone: "UTC",
  log_timezone: "UTC"
})

const isTooManyConnections = (error: unknown) => errorCode(error) === "53300"

const connects = (address: Address) =>
  Effect.tryPromise({
    try: async () => {
      const client = new Pg.Client({ ...address, ssl: false, connectionTimeoutMillis: 5_000 })
      client.on("error", () => {})
      try {
        await client.connect()
      } catch (error) {
        if (!isTooManyConnections(error)) throw error
      } finally {
        await client.end()
      }
    },
    catch: (error) => (error instanceof Error ? error.message : String(error))
  })

const attach = Effect.fn("Embedded.attach")(function* (options: Options) {
  const token = randomUUID()
  const binaries = yield* locateBinaries()
  const { home, major, runner } = yield* chooseRunner(homeIn(options.dataDir), binaries)
  const data = yield* Cluster.ensure({ home, binaries, runner, major, name: token })
  const host = yield* Access.prepareSocket(home, runner)
  const address: Address = { host, port: 5432, user: Cluster.user, database: Cluster.database }

  yield* Supervisor.prepare(home, runner)
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(path.join(home, "attachments", token), { force: true })))
  const descriptor = yield* Supervisor.open(home)

  const startTimeout = Duration.decode(options.startTimeout ?? "30 seconds")
  const access = yield* Access.settings(options.dataDir, Cluster.user, runner)
  const settings = { ...settingsFor(host), ...access, ...options.settings }
  const start = Effect.gen(function* () {
    if (yield* Access.isListening(host)) {
      yield* Cluster.interruptServer(data)
    } else {
      yield* Cluster.removeStaleLocks(data, path.join(host, Access.socketFile), runner)
      yield* Supervisor.start({ home, binaries, runner, settings })
    }
    yield* Effect.sleep("50 millis")
  })

  const connectOnce = Effect.gen(function* () {
    if (!Supervisor.isPresent(descriptor, token)) {
      yield* start
      return yield* Effect.fail("the server is starting")
    }
    if (!Supervisor.hasAcknowledged(home, token)) return yield* Effect.fail("another server is shutting down")
    return yield* connects(address)
  })

  const awaitReady = connectOnce.pipe(
    Effect.retry({ schedule: Schedule.spaced("20 millis"), while: Predicate.isString }),
    Effect.catchIf(Predicate.isString, (reason) => EmbeddedUnavailable.because(reason)),
    Effect.timeoutFail({
      duration: startTimeout,
      onTimeout: () =>
        EmbeddedUnavailable.because(
          `it was not ready within ${Duration.format(startTimeout)} (${Supervisor.lastLoggedError(home) ?? "no reason given"})`
        )
    })
  )
  yield* awaitReady
  yield* Effect.suspend(() =>
    Supervisor.isPresent(descriptor)
      ? Effect.void
      : Effect.zipRight(Effect.logWarning("The embedded database stopped unexpectedly. Restarting it"), awaitReady)
  ).pipe(
    Effect.catchAll(({ message }) => Effect.logError(message)),
    Effect.repeat(Schedule.spaced("500 millis")),
    Effect.forkScoped
  )
  return address
})
