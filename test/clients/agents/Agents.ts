import { spawn, spawnSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import http from "node:http"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { fences, page, section as sectionOf } from "../../docs/Markdown.ts"
import * as ForeignServer from "../../fetching/ForeignServer.ts"
import { eventually } from "../../harness/database/Money.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const Programs = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.String }))

let found: typeof Programs.Type | undefined

/** Where the agents are installed; it may take minutes on a machine's first run. */
const locate = (): typeof Programs.Type => {
  const script = fileURLToPath(new URL("install.mjs", import.meta.url))
  const { stderr, stdout } = spawnSync(process.execPath, [script], { encoding: "utf8", timeout: 400_000 })
  const programs = Schema.decodeUnknownOption(Programs)(stdout)
  return programs._tag === "Some" ? programs.value : (console.warn(stderr), {})
}

/** Undefined, and why is printed, where it could not be installed. */
export const programOf = (name: "codex" | "claude" | "opencode" | "qwen" | "cline" | "cn"): string | undefined => {
  found ??= locate()
  const program = found[name]
  if (program === undefined) console.warn(`skipped: ${name} is not installed and could not be, see install.mjs`)
  return program
}

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export type Environment = Readonly<Record<string, string>>

/** No program asks anyone but the gateway. */
const bareEnvironment = {
  PATH: process.env["PATH"],
  TERM: "dumb",
  HTTPS_PROXY: "http://127.0.0.1:9",
  HTTP_PROXY: "http://127.0.0.1:9",
  NO_PROXY: "127.0.0.1",
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  CONTINUE_TELEMETRY_ENABLED: "0",
  // Else a process of Cline stays behind.
  CLINE_SESSION_BACKEND_MODE: "local"
}

/** Runs a program in a folder, with nothing of this machine's environment but the path; killed with its scope. */
export const run = (file: string, args: ReadonlyArray<string>, cwd: string, env: Environment) =>
  Effect.async<Ran>((resume) => {
    const child = spawn(file, args, {
      cwd,
      env: { ...bareEnvironment, HOME: cwd, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    let [stdout, stderr] = ["", ""]
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
    child.on("error", (error) => resume(Effect.die(error)))
    child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
    return Effect.sync(() => child.pid !== undefined && child.exitCode === null && process.kill(-child.pid, "SIGKILL"))
  })

/** A folder with these files. */
export const workspace = (files: Readonly<Record<string, string | Uint8Array>>) =>
  Effect.map(temporaryDirectory, (directory) => {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
      writeFileSync(path.join(directory, name), content)
    }
    return directory
  })

/** The lines that are JSON. */
export const events = ({ stdout }: Ran): ReadonlyArray<unknown> =>
  stdout.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []))

const Row = Schema.Struct({
  status: Schema.Number,
  code: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
  attempts: Schema.Number,
  charge: Schema.BigInt
})

/** An organization's requests in the log, oldest first, once there are so many. */
export const requestsOf = (org: string, count: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    eventually(
      sql`SELECT status, code, route, jsonb_array_length(attempts) AS attempts, charge
        FROM request_log WHERE org_id = ${org} ORDER BY at, id`.pipe(
        Effect.flatMap(Schema.decodeUnknown(Schema.Array(Row))),
        Effect.orDie
      ),
      (requests) => requests.length >= count
    )
  )

/** A customer, and a way to run a program for it in a folder with these files. */
export const customerOf = Effect.fnUntraced(function* (options: Parameters<typeof Served.customer>[0] = {}) {
  const { url } = yield* Served.ServedGateway
  return { ...(yield* Served.customer(options)), url }
})

/** A proxy to the gateway that says what it answered, and has a client wait one second where it would be sixty. */
export const impatientProxy = (gateway: string, refused: Effect.Effect<unknown>) =>
  ForeignServer.make((request, response) => {
    const { connection: _, host: __, ...headers } = request.headers
    const passing = http.request(new URL(request.url ?? "", gateway), { method: request.method, headers }, (answer) => {
      const isRefused = answer.statusCode === 429
      const wait = isRefused ? { "retry-after": "1" } : {}
      const passOn = () => {
        response.writeHead(answer.statusCode ?? 502, { ...answer.headers, ...wait })
        answer.pipe(response)
      }
      if (isRefused) Effect.runCallback(refused, { onExit: passOn })
      else passOn()
    })
    request.pipe(passing)
  })

/** A section's block of `docs/agents.md`, for this gateway. */
export const block = (
  section: string,
  language: string,
  { secret, url }: { readonly secret: string; readonly url: string }
) => {
  const [text] = fences({ file: "", text: sectionOf(page("docs/agents.md"), section) }, language)
  if (text === undefined) throw new Error(`docs/agents.md has no block of ${language} in ${section}`)
  return text.replaceAll("http://127.0.0.1:8787", url).replaceAll("$GATEWAY_KEY", secret).replaceAll("ggw_…", secret)
}

/** What a block exports. */
export const exportsOf = (text: string): Environment =>
  Object.fromEntries(Array.from(text.matchAll(/^export (\w+)=(.*)$/gm), ([, name = "", value = ""]) => [name, value]))
