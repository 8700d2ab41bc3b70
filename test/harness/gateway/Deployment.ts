/**
 * `deploymentTest` gives a test a database, a scripted provider and a catalog, with which it starts gateways as
 * processes.
 */

import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import path from "node:path"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Context, Effect, Layer, Logger, LogLevel, Redacted, type Scope } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { BlockList } from "../../../src/services/access/BlockList.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { operator } from "../client/Account.ts"
import { proxyTo } from "../database/DatabaseProxy.ts"
import * as Postgres from "../database/Postgres.ts"
import { type Body, effectOf, it } from "../It.ts"
import { bundleOf, bundles, directoryWith } from "../temporary.ts"
import * as Upstream from "../upstream/FakeUpstream.ts"
import * as GatewayProcess from "./GatewayProcess.ts"
import { encode, type ShortTimings } from "./ShortTimings.ts"

/**
 * Returns a catalog with a chat model at 1 and 2 USD per million tokens, and an image model at 0.04 and 0.08 USD, with
 * one route each.
 */
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

export interface GatewayOptions extends Partial<GatewayProcess.StartOptions> {
  /** Short timings, which make the gateway run as `faultyProgram`. All gateways of a deployment should have the same ones. */
  readonly timings?: ShortTimings
}

/** A database and a provider for the gateway processes of one test. */
export class Deployment extends Context.Tag("test/Deployment")<
  Deployment,
  {
    readonly directory: string
    readonly upstream: Upstream.FakeUpstream
    readonly env: Readonly<Record<string, string>>
    /** A proxy in front of the database. Pass its URL as `DATABASE_URL` of a gateway that loses its database. */
    readonly door: ReturnType<typeof proxyTo>
    readonly gateway: (
      options?: GatewayOptions
    ) => Effect.Effect<GatewayProcess.GatewayProcess, GatewayProcess.NotStarted, Scope.Scope>
  }
>() {
  static readonly layer = Layer.unwrapScoped(
    Effect.gen(function* () {
      const databaseUrl = yield* Postgres.freshUrl
      const upstream = yield* Upstream.make
      const directory = yield* directoryWith({ "catalog.yaml": catalog(upstream.url) })
      const env = {
        DATABASE_URL: databaseUrl,
        CATALOG_FILE: path.join(directory, "catalog.yaml"),
        LOCAL_KEY: "k",
        DATA_DIR: path.join(directory, ".data")
      }
      const deployment = Deployment.of({
        directory,
        upstream,
        env,
        door: proxyTo(databaseUrl),
        gateway: ({ timings, ...options } = {}) => {
          const all = { ...options, env: { ...env, ...options.env } }
          if (timings === undefined) return GatewayProcess.start(all)
          return Effect.flatMap(faultyProgram, (entry) =>
            GatewayProcess.start({ ...all, entry, env: { ...all.env, TEST_TIMINGS: encode(timings) } })
          )
        }
      })
      return Layer.merge(operator, Layer.merge(BlockList.layer, RequestLog.layer)).pipe(
        Layer.provideMerge(Layer.orDie(Database.layerUrl(Redacted.make(databaseUrl)))),
        Layer.merge(Layer.succeed(Deployment, deployment))
      )
    })
  )
}

/** Runs a test with a deployment of its own. All its processes end before the database is deleted. */
export const inDeployment = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  test.pipe(Effect.scoped, Effect.provide(Deployment.layer), Logger.withMinimumLogLevel(LogLevel.None))

/** Declares a test with a deployment of its own. */
export const deploymentTest = (
  title: string,
  body: Body<[deployment: Deployment["Type"]], Layer.Layer.Success<typeof Deployment.layer> | Scope.Scope>,
  timeout?: number
) => it.live(title, () => inDeployment(Effect.flatMap(Deployment, effectOf(body))), timeout)

const root = fileURLToPath(new URL("../../../", import.meta.url))
const build = promisify(execFile)

/** Builds the program once for all processes of a test run. Later callers wait for the first one. */
const bundle = async (): Promise<string> => {
  const program = bundleOf("FaultyProgram")
  await mkdir(bundles, { recursive: true })
  const isFirst = await mkdir(`${program}.lock`).then(
    () => true,
    () => false
  )
  const entry = fileURLToPath(new URL("FaultyProgram.ts", import.meta.url))
  if (isFirst) await build(process.execPath, ["build.mjs", entry, program], { cwd: root })
  while (!existsSync(program)) await setTimeout(50)
  return program
}

let bundled: Promise<string> | undefined

/** The path of the built `FaultyProgram.ts`. */
export const faultyProgram = Effect.promise(() => (bundled ??= bundle()))
