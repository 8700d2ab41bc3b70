import { createHash } from "node:crypto"
import { accessSync, chmodSync, constants, lstatSync, renameSync, writeFileSync } from "node:fs"
import net from "node:net"
import { tmpdir, userInfo } from "node:os"
import path from "node:path"
import { Effect } from "effect"
import { makeFolders } from "../../services/runtime/System.ts"
import { EmbeddedUnavailable, perform, type Runner } from "./Programs.ts"

export const socketFile = ".s.PGSQL.5432"

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
export const prepareSocket = Effect.fn("Access.prepareSocket")(function* (home: string, runner: Runner) {
  const directory = directoryOf(home)
  yield* perform(runner, home, ["mkdir", "-p", "-m", "700", directory])
  const { mode, uid } = lstatSync(directory)
  if ((mode & 0o077) !== 0 || uid !== lstatSync(home).uid) {
    return yield* EmbeddedUnavailable.because(`${directory} is open to other users`)
  }
  return directory
})

/** Returns whether a server listens at the socket, even if it refuses the connection. */
export const isListening = (directory: string) =>
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

const write = (file: string, text: string) => {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o644 })
  chmodSync(draft, 0o644)
  renameSync(draft, file)
}

/**
 * Admits only connections from the caller's account, as reported by the kernel. Other programs may run as the server's
 * account.
 */
export const settings = (dataDir: string, user: string, { uid }: Runner) =>
  Effect.tryPromise({
    try: async (): Promise<Readonly<Record<string, string>>> => {
      if (uid === undefined) return {}
      const directory = path.resolve(dataDir, "postgres-access")
      await makeFolders(directory)
      chmodSync(directory, 0o755)
      const [hba, ident] = [path.join(directory, "pg_hba.conf"), path.join(directory, "pg_ident.conf")]
      write(ident, `gateway "${userInfo().username}" ${user}\n`)
      write(hba, "local all all peer map=gateway\n")
      return { hba_file: hba, ident_file: ident }
    },
    catch: (error) => EmbeddedUnavailable.because(`access to it cannot be restricted (${String(error)})`)
  })
