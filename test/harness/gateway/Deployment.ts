import { execFile } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Context, Effect, Layer, Logger, LogLevel, Redacted, type Scope } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { BlockList } from "../../../src/services/access/BlockList.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { operator } from "../client/Account.ts"
import * as Postgres from "../database/Postgres.ts"
import * as Proxy from "../database/TcpProxy.ts"
import { type Body, effectOf, it } from "../It.ts"
import { bundleOf, prefix } from "../temporary.ts"
import * as Upstream from "../upstream/FakeUpstream.ts"
import * as GatewayProcess from "./GatewayProcess.ts"

/** A chat model at 1 and 2 USD per million tokens and an image model at 0.04 and 0.08 USD, over one route each. */
const catalog = (upstream: string) => `
providers:
  local: {adapter: openai-chat, base_url: "${upstream}/v1", credential: LOCAL_KEY}
  drawer: {adapter: openai-images, base_url: "${upstream}/v1", credential: LOCAL_KEY}
families:
  A: {sampling: true, max_output_policy: clamp}
models:
  - id: m1
    surface: chat
    family: A
    context_length: 100000
    max_output: 8000
    pricing: {prompt_per_1m_usd: 1, completion_per_1m_usd: 2}
    reasoning: none
    capabilities: []
    image_tokens: 1000
    created: 2026-01-01
    routes: [{provider: local, model: up1}]
  - id: i1
    surface: image
    variants: [{resolution: 1K, price_usd: 0.04}, {resolution: 2K, price_usd: 0.08}]
    edit: true
    routes: [{provider: drawer, model: up2}]
`

export type GatewayOptions = Partial<GatewayProcess.StartOptions>

/** A database and a provider of one's own; gateways are started over them as processes. */
export class Deployment extends Context.Tag("test/Deployment")<
  Deployment,
  {
    readonly directory: string
    readonly upstream: Upstream.FakeUpstream
    readonly env: Readonly<Record<string, string>>
    /** A door to the database, for the `DATABASE_URL` of a gateway that shall lose it. */
    readonly door: Effect.Effect<
      Effect.Effect.Success<ReturnType<typeof Proxy.make>> & { readonly url: string },
      never,
      Scope.Scope
    >
    readonly gateway: (
      options?: GatewayOptions
    ) => Effect.Effect<GatewayProcess.GatewayProcess, GatewayProcess.NotStarted, Scope.Scope>
  }
>() {
  static readonly layer = Layer.unwrapScoped(
    Effect.gen(function* () {
      const databaseUrl = yield* Postgres.freshUrl
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(prefix)),
        // An embedded database of its own ends a moment after its last process.
        (made) => Effect.promise(() => rm(made, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }))
      )
      const upstream = yield* Upstream.make
      const file = path.join(directory, "catalog.yaml")
      yield* Effect.promise(() => writeFile(file, catalog(upstream.url)))
      const env = {
        DATABASE_URL: databaseUrl,
        CATALOG_FILE: file,
        LOCAL_KEY: "k",
        DATA_DIR: path.join(directory, ".data")
      }
      const deployment = Deployment.of({
        directory,
        upstream,
        env,
        door: doorTo(databaseUrl),
        gateway: (options) => GatewayProcess.start({ ...options, env: { ...env, ...options?.env } })
      })
      return Layer.merge(operator, Layer.merge(BlockList.layer, RequestLog.layer)).pipe(
        Layer.provideMerge(Layer.orDie(Database.layerUrl(Redacted.make(databaseUrl)))),
        Layer.merge(Layer.succeed(Deployment, deployment))
      )
    })
  )
}

/** Runs a test over a deployment of its own; what the test started ends before the database goes. */
export const inDeployment = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  test.pipe(Effect.scoped, Effect.provide(Deployment.layer), Logger.withMinimumLogLevel(LogLevel.None))

/** A test over a deployment of its own. */
export const deploymentTest = (
  title: string,
  body: Body<[deployment: Deployment["Type"]], Layer.Layer.Success<typeof Deployment.layer> | Scope.Scope>,
  timeout?: number
) => it.live(title, () => inDeployment(Effect.flatMap(Deployment, effectOf(body))), timeout)

/** A proxy before a database, and the URL that leads through it. */
export const doorTo = Effect.fnUntraced(function* (databaseUrl: string) {
  const url = new URL(databaseUrl)
  const host = url.searchParams.get("host")
  const door = yield* Proxy.make(
    host === null ? { host: url.hostname, port: Number(url.port || 5432) } : { path: path.join(host, ".s.PGSQL.5432") }
  )
  url.searchParams.delete("host")
  url.host = `127.0.0.1:${door.port}`
  return { ...door, url: url.href }
})

/** Bundles a program of this folder, once for all test files of this process; answers the path of the bundle. */
const bundle = (source: string) => {
  const make = async () => {
    const root = fileURLToPath(new URL("../../../", import.meta.url))
    const program = bundleOf(source)
    const entry = fileURLToPath(new URL(`${source}.ts`, import.meta.url))
    await promisify(execFile)(process.execPath, ["build.mjs", entry, program], { cwd: root })
    return program
  }
  let made: Promise<string> | undefined
  return Effect.promise(() => (made ??= make()))
}

/** The gateway that dies at a failpoint. */
export const failpointProgram = bundle("FailpointProgram")

/** The gateway whose wall clock is set by a signal. */
export const steppedClockProgram = bundle("SteppedClockProgram")

/** The gateway in which every chat fails after its hold. */
export const failingProgram = bundle("FailingProgram")
