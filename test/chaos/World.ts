import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect, Exit, Layer, Redacted, Schedule, Scope } from "effect"
import { Database } from "../../src/database/Database.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { openAccount, operator } from "../harness/client/Account.ts"
import * as GatewayProcess from "../harness/gateway/GatewayProcess.ts"
import { freePort } from "../harness/Listening.ts"
import { temporaryDirectory } from "../harness/temporary.ts"
import * as FaultProxy from "./FaultProxy.ts"
import { watchLimits } from "./LimitWatch.ts"
import * as Postmaster from "./Postmaster.ts"
import * as Providers from "./Providers.ts"
import { accounts, type Side, sides } from "./Schedule.ts"

/** In nano-USD. Chats cost a nano-USD a prompt token and a thousand a completion token. */
export const prices = { image: 40_000_000n, video: 400_000_000n }

const catalog = (urlOf: (account: string, kind: "vendor" | "farm") => string) => {
  const provider = (adapter: string, kind: "vendor" | "farm") => (account: string) => [
    `${account}-${adapter}`,
    { adapter, base_url: `${urlOf(account, kind)}${kind === "vendor" ? "/v1" : ""}`, credential: "HUSH_KEY" }
  ]
  const routes = (adapter: string) =>
    accounts.map((account, index) => ({
      provider: `${account}-${adapter}`,
      model: "hush/model",
      preference: index + 1
    }))
  return JSON.stringify({
    providers: Object.fromEntries([
      ...accounts.map(provider("openai-chat", "vendor")),
      ...accounts.map(provider("openai-images", "vendor")),
      ...accounts.map(provider("fal-queue", "farm"))
    ]),
    families: { A: { sampling: true, max_output_policy: "clamp" } },
    models: [
      {
        id: "chat",
        surface: "chat",
        family: "A",
        context_length: 2_000_000,
        max_output: 1_000_000,
        pricing: { prompt_per_1m_usd: 0.001, completion_per_1m_usd: 1 },
        reasoning: "none",
        capabilities: [],
        image_tokens: 1_000,
        routes: routes("openai-chat")
      },
      { id: "image", surface: "image", pricing: { per_image_usd: 0.04 }, routes: routes("openai-images") },
      {
        id: "video",
        surface: "video",
        pricing: { per_second_usd: 0.1 },
        seconds: { allowed: [4, 8], default: 4 },
        routes: routes("fal-queue")
      }
    ]
  })
}

/** Short enough that a request's whole life fits between two faults. */
const timeouts = {
  REQUEST_TIMEOUT: "8",
  FIRST_BYTE_TIMEOUT: "3",
  IDLE_TIMEOUT: "4",
  STREAM_TIMEOUT: "20",
  CONNECT_TIMEOUT: "2",
  VIDEO_TIMEOUT: "40",
  SHUTDOWN_TIMEOUT: "10"
}

/** A customer: one API key of its own, used by one client at a time. */
export interface Customer {
  readonly organization: number
  readonly orgId: string
  readonly keyId: string
  readonly secret: string
  readonly isCapped: boolean
  readonly limits: Limits
}

interface Limits {
  readonly tpm?: number
  readonly concurrency?: number
}

/** Of the first keys of an organization; what a chat holds and uses grows with its number. */
const limitsOf: Readonly<Record<number, ReadonlyArray<Limits>>> = {
  1: [{ tpm: 10_000 }, { concurrency: 1 }, { tpm: 30_000, concurrency: 2 }]
}

/** What each organization was given, in nano-USD; the last one's does not last. */
export const credits = [1_000_000_000_000n, 2_000_000_000_000n, 3_000_000_000_000n, 9_000_000n]
const customersOf = [5, 4, 2, 2]

const openAccounts = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const customers: Array<Customer> = []
  for (const [organization, nanoUsd] of credits.entries()) {
    const { org } = yield* openAccount({ nanoUsd })
    for (let seat = 0; seat < (customersOf[organization] ?? 1); seat++) {
      const isCapped = organization === 0 && seat === 0
      const limits = limitsOf[organization]?.[seat] ?? {}
      const cap = isCapped ? { cap_usd: NanoUsd(400_000_000n), cap_period: "total" as const } : {}
      const { record, secret } = yield* keys.create({ org, scopes: undefined, rpm: 1_000_000, ...limits, ...cap })
      customers.push({ organization, orgId: org, keyId: record.id, secret: Redacted.value(secret), isCapped, limits })
    }
  }
  return customers
})

/** One address at which one process follows the other. */
export const makeSlot = Effect.fnUntraced(function* (port: number, env: Readonly<Record<string, string>>) {
  const url = `http://127.0.0.1:${port}`
  let life: { readonly scope: Scope.CloseableScope; readonly process: GatewayProcess.GatewayProcess } | undefined
  /** What each life printed, for a finding. */
  const logs: Array<() => string> = []
  const expected = new Set<GatewayProcess.GatewayProcess>()
  const unexpected: Array<string> = []

  const once = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const process = yield* GatewayProcess.start({ env: { ...env, PORT: String(port) } }).pipe(
      Scope.extend(scope),
      Effect.timeoutFail({ duration: "60 seconds", onTimeout: () => new Error("it has not answered for 60 s") }),
      // The database may be away just now.
      Effect.tapError(() => Scope.close(scope, Exit.void))
    )
    life = { scope, process }
    logs.push(process.stderr)
    yield* process.ended.pipe(
      Effect.tap((end) => Effect.sync(() => expected.has(process) || unexpected.push(`ended ${JSON.stringify(end)}`))),
      Effect.forkDaemon
    )
  })
  const start = once.pipe(
    Effect.retry(Schedule.spaced("500 millis").pipe(Schedule.upTo("60 seconds"))),
    Effect.catchAll(({ message }) => Effect.sync(() => unexpected.push(`did not start: ${message.slice(0, 1_000)}`)))
  )
  const signal = (name: NodeJS.Signals) => life?.process.signal(name) ?? Effect.void
  /** Ends the process by a signal and waits for its end. */
  const end = (name: "SIGKILL" | "SIGTERM") =>
    Effect.suspend(() => {
      if (life === undefined) return Effect.void
      const { process, scope } = life
      life = undefined
      expected.add(process)
      return Effect.zipRight(process.signal(name), process.ended).pipe(
        Effect.timeoutOption("30 seconds"),
        Effect.zipRight(Scope.close(scope, Exit.void))
      )
    })
  yield* Effect.addFinalizer(() => end("SIGKILL"))
  return { url, start, signal, end, logs, unexpected }
})

export type Slot = Effect.Effect.Success<ReturnType<typeof makeSlot>>

const bySide = <A, E, R>(make: (side: Side) => Effect.Effect<A, E, R>) =>
  Effect.map(Effect.all({ left: make("left"), right: make("right") }), (both): Readonly<Record<Side, A>> => both)

/** Two gateways over one database, a proxy between each and it, and one before the providers. */
export const make = Effect.fnUntraced(function* (options: { readonly seed: string; readonly now: () => number }) {
  const directory = yield* temporaryDirectory
  const database = yield* Postmaster.make(path.join(directory, "database"))
  const providers = yield* Providers.make(options)
  const doors = {
    vendor: yield* FaultProxy.make({ host: "127.0.0.1", port: Number(new URL(providers.vendorUrl).port) }),
    farm: yield* FaultProxy.make({ host: "127.0.0.1", port: Number(new URL(providers.farmUrl).port) })
  }
  const file = path.join(directory, "catalog.json")
  const text = catalog((account, kind) => `http://127.0.0.1:${doors[kind].port}/${account}`)
  yield* Effect.promise(() => writeFile(file, text))

  const lines = yield* bySide(() => FaultProxy.make({ path: database.socket }))
  const ports = yield* bySide(() => freePort)
  const gateways = yield* bySide((side) => {
    const url = new URL(database.url)
    url.searchParams.delete("host")
    url.host = `127.0.0.1:${lines[side].port}`
    return makeSlot(ports[side], {
      DATABASE_URL: url.href,
      PUBLIC_URL: `http://127.0.0.1:${ports.left}`,
      CATALOG_FILE: file,
      HUSH_KEY: "sk-hush",
      DATA_DIR: path.join(directory, "data"),
      LOG_FORMAT: "json",
      ...timeouts
    })
  })
  for (const side of sides) yield* gateways[side].start
  const customers = yield* Effect.provide(
    Effect.zipRight(watchLimits, openAccounts),
    Layer.provideMerge(operator, Layer.orDie(Database.layerUrl(Redacted.make(database.url))))
  )
  return { database, providers, doors, lines, gateways, customers }
})

export type World = Effect.Effect.Success<ReturnType<typeof make>>
