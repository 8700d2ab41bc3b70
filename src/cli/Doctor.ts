import { existsSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { createServer } from "node:net"
import path from "node:path"
import { Command } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { pluralize } from "../domain/Plural.ts"
import { type Settings, warnings } from "../Settings.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import { type CatalogInvalid } from "../services/catalog/Problem.ts"
import { type RunningGateway } from "../services/instance/RunningGateway.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import * as MediaStores from "../storage/MediaStores.ts"
import * as Commands from "./Commands.ts"
import { quiet, readCatalogOptions, settingsOfRunning } from "./Connection.ts"
import { checkDatabase, type Finding, finding, list, ok, problem, report, warning } from "./DoctorDatabase.ts"
import { type CatalogReport, check } from "./prices/Check.ts"

const checkSettings = (settings: Settings): ReadonlyArray<Finding> => {
  const notes = warnings(settings)
  return notes.length === 0 ? [ok("settings", "readable")] : notes.map((note) => warning("settings", note))
}

const checkCatalog = ({ models, off, sandbox }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const sold = `${models.length} of ${pluralize(models.length + off.length, "model")} can be called`
  const served = sandbox ? [warning("catalog", "the sandbox serves made-up answers: set a provider's credential")] : []
  if (models.length === 0) return [problem("catalog", `${sold}: set a provider's credential, or SANDBOX=true`)]
  const names = list(off.map(({ id }) => id))
  return off.length === 0
    ? [ok("catalog", sold), ...served]
    : [warning("catalog", `${sold}; off: ${names}. gateway catalog check says why`), ...served]
}

const checkPrices = ({ losses, unitPrices }: Pick<CatalogReport, "losses" | "unitPrices">): Finding => {
  const found = [...unitPrices, ...losses]
  return found.length === 0
    ? ok("prices", "none is below a cost that the catalog names")
    : warning("prices", `${list(found)}. gateway catalog check shows margins`)
}

const checkCredentials = ({ providers }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const needed = providers.flatMap(({ ready, variable }) => (variable === undefined ? [] : [{ ready, variable }]))
  const names = (isSet: boolean) =>
    [...new Set(needed.flatMap(({ ready, variable }) => (ready === isSet ? [variable] : [])))].join(", ")
  if (needed.length === 0) return [ok("credentials", "none is needed")]
  const unset = names(false) === "" ? "" : `; not set: ${names(false)}`
  return names(true) === ""
    ? [warning("credentials", `none is set, of ${names(false)}`)]
    : [ok("credentials", `set: ${names(true)}${unset}`)]
}

const catalogProblems = ({ problems }: CatalogInvalid): ReadonlyArray<Finding> =>
  problems.map(({ file, key, line, message }) => problem("catalog", `${file}:${line} ${key} ${message}`))

const gib = 1024 ** 3
const scarce = { warning: 5 * gib, problem: gib / 2 }

/** Checks the file system that holds, or will hold, the data directory. */
const checkDisk = ({ dataDir }: Settings): Effect.Effect<Finding> => {
  let directory = dataDir
  while (!existsSync(directory) && directory !== path.dirname(directory)) directory = path.dirname(directory)
  return Effect.tryPromise(() => statfs(directory)).pipe(
    Effect.map(({ bavail, blocks, bsize }) => {
      const free = bavail * bsize
      const detail = `${(free / gib).toFixed(1)} GiB of ${((blocks * bsize) / gib).toFixed(1)} GiB are free at ${dataDir}`
      if (free < scarce.problem) return problem("disk", `${detail}: make room, or move DATA_DIR`)
      return free < scarce.warning ? warning("disk", `${detail}: soon too little`) : ok("disk", detail)
    }),
    Effect.catchAll(({ error }) => Effect.succeed(problem("disk", `${dataDir} cannot be looked at: ${String(error)}`)))
  )
}

const tryPort = ({ host, port }: Settings) =>
  Effect.async<string | undefined>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : error.message)))
    server.listen(port, host, () => server.close(() => resume(Effect.succeed(undefined))))
  })

const Health = Schema.parseJson(Schema.Struct({ status: Schema.String, reason: Schema.optional(Schema.String) }))

const get = (url: string) =>
  Effect.tryPromise(async (signal) => (await fetch(url, { signal })).text()).pipe(
    Effect.timeout("3 seconds"),
    Effect.option
  )

const reachableHost = (host: string) => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host)

const askGateway = Effect.fnUntraced(function* (url: string) {
  const ready = Option.flatMap(yield* get(`${url}/readyz`), Schema.decodeOption(Health))
  const metrics = yield* get(`${url}/metrics`)
  const version = Option.map(metrics, (text) => /^gateway_build_info\{[^}]*version="([^"]+)"/m.exec(text)?.[1])
  return Option.map(ready, ({ reason, status }) => ({ status, reason, version: Option.getOrUndefined(version) }))
})

type Answer = Effect.Effect.Success<ReturnType<typeof askGateway>>

const portReport = (address: string, answer: Answer, silence: string) => {
  if (Option.isNone(answer)) return { isRunning: false, finding: problem("port", `${address} ${silence}`) }
  const { reason, status, version } = answer.value
  const which = version === undefined ? "a gateway" : `gateway ${version}`
  const says = reason === undefined ? status : `${status}: ${reason}`
  const state = status === "ready" ? "ok" : "problem"
  return { isRunning: true, finding: finding("port", state, `${address}: ${which} answers, ${says}`) }
}

/** Probes the running gateway, else the port in the settings. */
const checkPort = Effect.fn("Doctor.checkPort")(function* (
  settings: Settings,
  running: Pick<RunningGateway, "url"> | undefined
) {
  if (running !== undefined) {
    const report = portReport(
      new URL(running.url).host,
      yield* askGateway(running.url),
      "does not answer: check its log"
    )
    return { ...report, isRunning: true }
  }
  const { host, port } = settings
  const code = port === 0 ? undefined : yield* tryPort(settings)
  const address = `${host}:${port}`
  if (code === undefined) return { isRunning: false, finding: ok("port", `${address} is free: no gateway runs here`) }
  if (code !== "EADDRINUSE") {
    return {
      isRunning: false,
      finding: problem("port", `${address} cannot be listened on: ${code}; set HOST and PORT`)
    }
  }
  const silence = "is taken by another program, or by a gateway that does not answer; set PORT"
  return portReport(address, yield* askGateway(`http://${reachableHost(host)}:${port}`), silence)
})

const probe = new TextEncoder().encode("gateway doctor")

const isSame = (bytes: Uint8Array) => Buffer.compare(bytes, probe) === 0

const checkLink = (link: string): Effect.Effect<Finding> =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(link, { signal })
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) }
  }).pipe(
    Effect.timeout("5 seconds"),
    Effect.map(({ body, status }) => {
      if (status === 200 && isSame(body)) return ok("media links", `${new URL(link).origin} gives what was stored`)
      const advice = status >= 500 ? "it fails there" : "let the public read it, or set MEDIA_PUBLIC_URL"
      return warning("media links", `${link} answers ${status}: ${advice}`)
    }),
    Effect.catchAll(() =>
      Effect.succeed(
        warning("media links", `${new URL(link).origin} does not answer here: see PUBLIC_URL, MEDIA_PUBLIC_URL`)
      )
    )
  )

const checkStore = Effect.fnUntraced(function* (isServed: boolean) {
  const store = yield* MediaStore
  return yield* Effect.acquireUseRelease(
    store.put({ type: "image/png", visibility: "public", body: probe }),
    (name) =>
      Effect.gen(function* () {
        const read = yield* store.read(name)
        if (!Option.exists(read, isSame)) return [problem("media store", "what was written cannot be read back")]
        const stored = ok("media store", "a file was written, read and deleted")
        return isServed ? [stored, yield* checkLink(store.link(name))] : [stored]
      }),
    (name) => Effect.ignore(store.remove(name))
  )
})

/** A disk's links are the gateway's own: without one running they lead nowhere. */
const checkMedia = Effect.fn("Doctor.checkMedia")(function* ({ media }: Settings, isRunning: boolean) {
  if (media.store === "disk" && !existsSync(media.directory)) {
    return [warning("media store", `none yet: the first start makes ${media.directory}`)]
  }
  return yield* checkStore(media.store === "s3" || isRunning).pipe(
    Effect.provide(MediaStores.layer(media)),
    Effect.catchAll(({ detail }) => Effect.succeed([problem("media store", detail)]))
  )
})

const offer = Effect.flatMap(readCatalogOptions, (options) =>
  Effect.all({ snapshot: Catalog.make(options), report: check(options) })
).pipe(
  Effect.map(({ report, snapshot }) => [...checkCatalog(snapshot), checkPrices(report), ...checkCredentials(snapshot)]),
  Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(catalogProblems(invalid)))
)

const examine = Effect.gen(function* () {
  const { running, settings: read } = yield* settingsOfRunning
  const port = yield* checkPort(read, running)
  return [
    ...checkSettings(read),
    ...(yield* offer),
    port.finding,
    yield* checkDisk(read),
    ...(yield* checkDatabase(read)),
    ...(yield* checkMedia(read, port.isRunning))
  ]
}).pipe(Effect.catchTag("SettingsInvalid", ({ message }) => Effect.succeed([problem("settings", message)])))

export const doctor = Commands.make("doctor", "Find problems, from the settings to routes and webhooks.", {}, () =>
  Effect.map(examine, report)
).pipe(Command.provide(quiet))
