import { createHash } from "node:crypto"
import { accessSync, constants, lstatSync } from "node:fs"
import net from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { Effect } from "effect"
import { EmbeddedUnavailable } from "./EmbeddedUnavailable.ts"
import { perform, type Runner } from "./Runner.ts"

const file = ".s.PGSQL.5432"

/** What the smallest `sun_path` of the supported systems holds. */
const maxPathBytes = 103

const isWritable = (directory: string) => {
  try {
    accessSync(directory, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Where the server of `home` listens. Every process must come to the same answer, so TMPDIR only comes last. */
const directoryOf = (home: string) => {
  const beside = path.join(home, "run")
  if (Buffer.byteLength(path.join(beside, file)) <= maxPathBytes) return beside
  const name = `gateway-${createHash("sha256").update(home).digest("hex").slice(0, 16)}`
  return path.join(["/tmp", "/var/tmp"].find(isWritable) ?? tmpdir(), name)
}

/** Makes the directory as the runner's own and private: whoever gets in there is the database's superuser. */
export const prepare = Effect.fn("Socket.prepare")(function* (home: string, runner: Runner) {
  const directory = directoryOf(home)
  yield* perform(runner, home, ["mkdir", "-p", "-m", "700", directory])
  const { mode, uid } = lstatSync(directory)
  if ((mode & 0o077) !== 0 || uid !== lstatSync(home).uid) {
    return yield* EmbeddedUnavailable.because(`${directory} is open to other users`)
  }
  return directory
})

/** Whether a server accepts connections there, if only to refuse them. */
export const isListening = (directory: string) =>
  Effect.async<boolean>((resume) => {
    const socket = net.connect(path.join(directory, file))
    const answer = (listening: boolean) => {
      socket.destroy()
      resume(Effect.succeed(listening))
    }
    socket.setTimeout(2_000, () => answer(true))
    socket.on("connect", () => answer(true))
    socket.on("error", () => answer(false))
    return Effect.sync(() => socket.destroy())
  })
