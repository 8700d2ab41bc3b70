import { createHash, randomUUID } from "node:crypto"
import { accessSync, chmodSync, constants, existsSync, lstatSync, renameSync, rmSync, writeFileSync } from "node:fs"
import net from "node:net"
import { tmpdir, userInfo } from "node:os"
import path from "node:path"
import { Context, Duration, Effect, Layer, Predicate, Schedule } from "effect"
import * as Pg from "pg"
import { errorCode, makeFolders } from "../services/runtime/System.ts"
import * as Cluster from "./embedded/Cluster.ts"
import { chooseRunner, EmbeddedUnavailable, locateBinaries, perform, type Runner } from "./embedded/Programs.ts"
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

const socketFile = ".s.PGSQL.5432"

/** The smallest limit of the supported systems for the path of a socket (`sun_path`). */
const maxPathBytes = 103

const isWritable = (directory: string) => {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** All processes must choose the same directory, so TMPDIR, which may differ, is the last choice. */
const directoryOf = (home: string) => {
  const beside = path.join(home, "run")
  if (Buffer.byteLength(path.join(beside, socketFile)) <= maxPathBytes) return beside
  const name = `gateway-${createHash("sha256").update(home).digest("hex").slice(0, 16)}`
  return path.join(["/tmp", "/var/tmp"].find(isWritable) ?? tmpdir(), name)
}

/** Makes the directory private, because everyone who can open the socket is a superuser of the database. */
export const prepareSocket = Effect.fn("Embedded.prepareSocket")(function* (home: string, runner: Runner) {
  const directory = directoryOf(home)
  yield* perform(runner, home, ["mkdir", "-p", "-m", "700", directory])
  const { mode, uid } = lstatSync(directory)
  if ((mode & 0o077) !== 0 || uid !== lstatSync(home).uid) {
    return yield* EmbeddedUnavailable.because(`${directory} is open to other users`)
  }
  return directory
})

/** Returns whether a server listens at the socket, even if it refuses the connection. */
const isListening = (directory: string) =>
  Effect.async<boolean>((resume) => {
    const socket = net.connect(path.join(directory, socketFile))
    const answer = (isListening: boolean) => {
      socket.destroy()
      resume(Effect.succeed(isListening))
    }
    socket.setTimeout(2_000, () => answer(true))
    socket.on("connect", () => answer(true))
    socket.on("error", () => answer(false))
    return Effect.sync(() => socket.destroy())
  })

const replaceFile = (file: string, text: string) => {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o644 })
  chmodSync(draft, 0o644)
  renameSync(draft, file)
}

/**
 * Admits only connections from the caller's account, as reported by the kernel. Other programs may run as the server's
 * account.
 */
const accessSettings = (dataDir: string, user: string, { uid }: Runner) =>
  Effect.tryPromise({
    try: async (): Promise<Readonly<Record<string, string>>> => {
      if (uid === undefined) return {}
      const directory = path.resolve(dataDir, "postgres-access")
      await makeFolders(directory)
      chmodSync(directory, 0o755)
      const [hba, ident] = [path.join(directory, "pg_hba.conf"), path.join(directory, "pg_ident.conf")]
      replaceFile(ident, `gateway "${userInfo().username}" ${user}\n`)
      replaceFile(hba, "local all all peer map=gateway\n")
      return { hba_file: hba, ident_file: ident }
    },
    catch: (error) => EmbeddedUnavailable.because(`access to it cannot be restricted (${String(error)})`)
  })

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
  const host = yield* prepareSocket(home, runner)
  const address: Address = { host, port: 5432, user: Cluster.user, database: Cluster.database }

  yield* Supervisor.prepare(home, runner)
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(path.join(home, "attachments", token), { force: true })))
  const descriptor = yield* Supervisor.open(home)

  const startTimeout = Duration.decode(options.startTimeout ?? "30 seconds")
  const access = yield* accessSettings(options.dataDir, Cluster.user, runner)
  const settings = { ...settingsFor(host), ...access, ...options.settings }
  const start = Effect.gen(function* () {
    if (yield* isListening(host)) {
      yield* Cluster.interruptServer(data)
    } else {
      yield* Cluster.removeStaleLocks(data, path.join(host, socketFile), runner)
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
