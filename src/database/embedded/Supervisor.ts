import { closeSync, constants, existsSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { errorCode } from "../../services/runtime/System.ts"
import { type Binaries, EmbeddedUnavailable, perform, type Runner, start as startProcess } from "./Programs.ts"

/*
 * Processes that use the server hold the FIFO `attached` open for writing, and its supervisor holds it open for reading. So each
 * side notices when the other ends, even after kill -9. If the supervisor acknowledges a token, it has not seen the end of the
 * FIFO before. Only the supervisor whose server owns the data reads, so another one consumes no token.
 */
const script = `
home=$1
shift
umask 077
exec 3<&0 </dev/null >>"$home/log" 2>&1
trap '' HUP INT TERM
"$@" 3<&- &
server=$!
(
  until read -r owner <"$home/data/postmaster.pid" && [ "$owner" = "$server" ]; do
    kill -0 "$server" || exit
    sleep 0.02 3<&-
  done 2>/dev/null
  rm -rf "$home/attachments"
  mkdir "$home/attachments"
  while read -r token; do
    kill -0 "$server" || exit
    [ -z "$token" ] || : >"$home/attachments/$token"
  done <&3
  kill -INT "$server"
  waited=0
  while [ "$waited" -lt 60 ] && kill -0 "$server"; do
    sleep 1 3<&-
    waited=$((waited + 1))
  done 2>/dev/null
  kill -0 "$server" && kill -QUIT "$server"
) &
reader=$!
exec 3<&-
wait "$server"
kill -KILL "$reader"
`

const maxLogBytes = 1024 * 1024

const fifo = (home: string) => path.join(home, "attached")

const makeFifo = `[ -p "$1" ] || mkfifo -m 600 "$1" || [ -p "$1" ]`

export const prepare = (home: string, runner: Runner) =>
  perform(runner, home, ["/bin/sh", "-c", makeFifo, "sh", fifo(home)])

/** Opens the FIFO for writing. The descriptor is closed on exec, so no child process keeps the server alive. */
export const open = (home: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const both = openSync(fifo(home), constants.O_RDWR | constants.O_NONBLOCK)
        try {
          return openSync(fifo(home), constants.O_WRONLY | constants.O_NONBLOCK)
        } finally {
          closeSync(both)
        }
      },
      catch: (error) => EmbeddedUnavailable.because(`${fifo(home)} cannot be opened (${String(error)})`)
    }),
    (descriptor) => Effect.sync(() => closeSync(descriptor))
  )

/** Returns whether a supervisor has the FIFO open. Sends it the token, if there is one, for acknowledgement. */
export const isPresent = (descriptor: number, token = "") => {
  try {
    writeSync(descriptor, `${token}\n`)
    return true
  } catch (error) {
    return errorCode(error) === "EAGAIN"
  }
}

export const hasAcknowledged = (home: string, token: string) => existsSync(path.join(home, "attachments", token))

const rotateLog = (log: string) => {
  if (existsSync(log) && statSync(log).size > maxLogBytes) renameSync(log, `${log}.1`)
}

export const lastLoggedError = (home: string) => {
  const log = path.join(home, "log")
  if (!existsSync(log)) return undefined
  return readFileSync(log, "utf8")
    .split("\n")
    .findLast((line) => /FATAL|PANIC|error while/.test(line))
}

const setting = ([name, value]: readonly [string, string]) => ["-c", `${name}=${value}`]

/** The caller must hold the FIFO open. */
export const start = (options: {
  readonly home: string
  readonly binaries: Binaries
  readonly runner: Runner
  readonly settings: Readonly<Record<string, string>>
}) =>
  Effect.try(() => {
    const { binaries, home, runner, settings } = options
    rotateLog(path.join(home, "log"))
    const postgres = [binaries.postgres, "-D", path.join(home, "data"), ...Object.entries(settings).flatMap(setting)]
    const readEnd = openSync(fifo(home), constants.O_RDONLY)
    try {
      startProcess(runner, ["/bin/sh", "-c", script, "sh", home, ...postgres], {
        cwd: home,
        detached: true,
        stdio: [readEnd, "ignore", "ignore"]
      })
        .on("error", () => {})
        .unref()
    } finally {
      closeSync(readEnd)
    }
  }).pipe(Effect.mapError((error) => EmbeddedUnavailable.because(String(error.error))))
