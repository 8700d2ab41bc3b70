/** `layer` runs a gateway in the test process with a database of its own. `customer` calls it with OpenAI's client. */

import path from "node:path"
import { HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { SqlClient } from "@effect/sql"
import { type Clock, Context, Data, Effect, Layer, Logger, ManagedRuntime, Redacted, Schedule, Schema } from "effect"
import OpenAI from "openai"
import { Database } from "../../../src/database/Database.ts"
import * as Gateway from "../../../src/Gateway.ts"
import { withoutOwnSpans } from "../../../src/Launch.ts"
import { readSettings } from "../../../src/Settings.ts"
import { BlockList } from "../../../src/services/access/BlockList.ts"
import { readCatalogFile } from "../../../src/services/catalog/Catalog.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { ownFile } from "../../../src/services/runtime/System.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { RequestRow, restoreAttempts } from "../../../src/services/telemetry/RequestLog.ts"
import { openAccount, operator } from "../client/Account.ts"
import { freshUrl } from "../database/Postgres.ts"
import { directoryWith } from "../temporary.ts"
import { type GatewayProcess, start } from "./GatewayProcess.ts"
import { complete, type ShortTimings } from "./ShortTimings.ts"

interface RunOptions {
  /** The gateway's clock. The default is the real one. */
  readonly clock?: Clock.Clock | undefined
  /** The timings of its background work. The default is those of production. */
  readonly timings?: ShortTimings | undefined
}

export interface ServedOptions extends RunOptions {
  /** The text of the catalog. The default is the built-in one. */
  readonly catalog?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A gateway with a database of its own, which all tests of a file share. */
export class ServedGateway extends Context.Tag("test/ServedGateway")<
  ServedGateway,
  {
    /** `http://127.0.0.1:PORT`, without `/v1`. */
    readonly url: string
  }
>() {}

/** Like `ServedGateway`, but as a separate process. */
export class ServedProcess extends Context.Tag("test/ServedProcess")<ServedProcess, GatewayProcess>() {}

/** Adds what an operator needs to set up accounts and to read the gateway's database. */
const layerOf = <A, E, R, EServed, RServed>(
  options: Effect.Effect<ServedOptions, E, R>,
  serve: (env: Readonly<Record<string, string>>, options: RunOptions) => Layer.Layer<A, EServed, RServed>
) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const url = yield* freshUrl
      const { catalog, env, ...run } = yield* options
      const directory = yield* directoryWith(catalog === undefined ? {} : { "catalog.yaml": catalog })
      const gateway = serve(
        {
          DATABASE_URL: url,
          DATA_DIR: directory,
          ...(catalog === undefined ? {} : { CATALOG_FILE: path.join(directory, "catalog.yaml") }),
          ...env
        },
        run
      )
      return gateway.pipe(
        Layer.merge(BlockList.layer),
        Layer.merge(operator),
        Layer.provideMerge(Database.layerUrl(Redacted.make(url), { maxConnections: 2 }))
      )
    })
  )

/** Runs the gateway in the test process and discards its log. */
export const layer = <E, R>(options: Effect.Effect<ServedOptions, E, R>) =>
  layerOf(options, (env, run) => Layer.scoped(ServedGateway, serveHere(env, run)))

/** Runs the gateway as a process, for tests of its output, its metrics or its process. */
export const processLayer = <E, R>(options: Effect.Effect<ServedOptions, E, R>) =>
  layerOf(options, (env) =>
    Layer.scopedContext(
      Effect.map(start({ env }), (gateway) =>
        Context.make(ServedProcess, gateway).pipe(Context.add(ServedGateway, gateway))
      )
    )
  )

const Credits = Schema.Struct({
  object: Schema.Literal("credits"),
  available_usd: Schema.Number,
  balance_usd: Schema.Number,
  held_usd: Schema.Number,
  cap_usd: Schema.NullOr(Schema.Number),
  cap_spent_usd: Schema.NullOr(Schema.Number),
  cap_resets_at: Schema.NullOr(Schema.Number)
})

/** Converts a JSON number of USD to nano-USD. It has at most nine decimals. */
const nano = (usd: number): bigint => BigInt(usd.toFixed(9).replace(".", ""))

/** Returns the result of `GET /credits`, in nano-USD. */
const credits = (url: string, secret: string) =>
  Effect.promise(() => fetch(`${url}/v1/credits`, { headers: { authorization: `Bearer ${secret}` } })).pipe(
    Effect.flatMap((response) => Effect.promise(() => response.json())),
    Effect.flatMap(Schema.decodeUnknown(Credits, { onExcessProperty: "error" })),
    Effect.orDie,
    Effect.map((body) => ({
      available: nano(body.available_usd),
      balance: nano(body.balance_usd),
      held: nano(body.held_usd)
    }))
  )

class StillHeld extends Data.TaggedError("StillHeld")<{ readonly message: string }> {}

/** Polls for at most ten seconds. */
const polling = Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(500))

type AccountOptions = Parameters<typeof openAccount>[0]
const plenty = 100_000_000_000n

/**
 * Creates a customer with an account of its own and the official client on its default settings, except that it does
 * not retry.
 */
export const customer = Effect.fnUntraced(function* (options: AccountOptions = {}) {
  const { url } = yield* ServedGateway
  const account = yield* openAccount({ nanoUsd: plenty, ...options })
  const baseUrl = `${url}/v1`
  const funds = credits(url, account.secret)
  const spent = funds.pipe(
    Effect.filterOrFail(
      ({ held }) => held === 0n,
      ({ held }) => new StillHeld({ message: `${account.org} has ${held} held` })
    ),
    Effect.map(({ balance }) => (options.nanoUsd ?? plenty) - balance)
  )
  return {
    ...account,
    baseUrl,
    openai: new OpenAI({ baseURL: baseUrl, apiKey: account.secret, maxRetries: 0 }),
    funds,
    /** The charged amount in nano-USD. Fails while a hold is open. */
    spent: Effect.orDie(spent),
    /** Like `spent`, but waits until all holds are closed. */
    spentInTheEnd: Effect.orDie(Effect.retry(spent, polling))
  }
})

export type Customer = Effect.Effect.Success<ReturnType<typeof customer>>

/** Returns the log row of a request. Waits for it, because it is written shortly after the answer. */
export const logged = Effect.fnUntraced(function* (requestId: string | null | undefined) {
  const sql = yield* SqlClient.SqlClient
  return yield* Effect.flatMap(
    sql`SELECT * FROM request_log WHERE request_id = ${requestId ?? ""}`,
    Schema.decodeUnknown(Schema.Tuple(RequestRow))
  ).pipe(
    Effect.retry(polling),
    Effect.orDie,
    Effect.map(([row]) => restoreAttempts(row))
  )
})

/** Requests that still run at the end of a test are aborted soon. */
const atOnce = { SHUTDOWN_DELAY: "0", SHUTDOWN_TIMEOUT: "1" }

/** An effect that runs at a failpoint. */
type Reach = (name: FailpointName) => Effect.Effect<void>

/**
 * Serves with these settings in this process until the scope closes, on a free port unless they name one. It has a
 * runtime of its own, so no clock, layer or logger of the test affects it.
 */
export const serveHere = Effect.fnUntraced(function* (
  given: Readonly<Record<string, string>>,
  { clock, reach = () => Effect.void, timings = {} }: RunOptions & { readonly reach?: Reach } = {}
) {
  const environment = { PORT: "0", ...atOnce, ...given }
  const settings = yield* readSettings(environment)
  const file = settings.catalogFile ?? ownFile("catalog.yaml")
  const readCatalog = Effect.map(readCatalogFile(file), (source) => ({ source, environment }))
  const gateway = Layer.unwrapEffect(
    Effect.map(Effect.context<NodeContext.NodeContext>(), (node) =>
      Gateway.layer({ settings, readCatalog: Effect.provide(readCatalog, node) })
    )
  ).pipe(
    Layer.provide(Gateway.database(settings)),
    Layer.provide(NodeContext.layer),
    Layer.provide(Layer.merge(withoutOwnSpans, Logger.remove(Logger.defaultLogger))),
    Layer.provide(Layer.succeed(Failpoint, { reach })),
    Layer.provide(clock === undefined ? Layer.empty : Layer.setClock(clock)),
    Layer.provide(Layer.succeed(Timings, complete(timings)))
  )
  const runtime = yield* Effect.acquireRelease(
    Effect.sync(() => ManagedRuntime.make(gateway)),
    ({ dispose }) => Effect.promise(dispose)
  )
  const { address } = yield* Effect.promise(() => runtime.runPromise(HttpServer.HttpServer))
  return {
    url: `http://127.0.0.1:${address._tag === "TcpAddress" ? address.port : 0}`,
    /** Interrupts all running requests, as a stop does after its timeout. */
    abort: Effect.promise(() => runtime.runPromise(Effect.flatMap(InFlight, ({ abort }) => abort)))
  }
})
