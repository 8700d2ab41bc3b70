/**
 * `layer`: a gateway in the process of the tests, over a database of its own; `customer` calls it with OpenAI's client.
 */

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
import { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import { openAccount, operator } from "../client/Account.ts"
import { freshUrl } from "../database/Postgres.ts"
import { directoryWith } from "../temporary.ts"
import { type GatewayProcess, start } from "./GatewayProcess.ts"
import { complete, type ShortTimings } from "./ShortTimings.ts"

interface RunOptions {
  /** The gateway's; the real one where undefined. */
  readonly clock?: Clock.Clock | undefined
  /** Those of its background work; the usual ones where undefined. */
  readonly timings?: ShortTimings | undefined
}

export interface ServedOptions extends RunOptions {
  /** The catalog's text; the built-in one where undefined. */
  readonly catalog?: string
  readonly env?: Readonly<Record<string, string>>
}

/** A gateway over a database of its own, shared by the tests of a file. */
export class ServedGateway extends Context.Tag("test/ServedGateway")<
  ServedGateway,
  {
    /** `http://127.0.0.1:PORT`, without `/v1`. */
    readonly url: string
  }
>() {}

/** The same as a process of its own. */
export class ServedProcess extends Context.Tag("test/ServedProcess")<ServedProcess, GatewayProcess>() {}

/** Beside the gateway itself, what an operator needs to arrange and to look things up in its database. */
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

/** The gateway runs in the tests' own process, which has loaded it already; its log goes nowhere. */
export const layer = <E, R>(options: Effect.Effect<ServedOptions, E, R>) =>
  layerOf(options, (env, run) => Layer.scoped(ServedGateway, serveHere(env, run)))

/** For tests of what a gateway prints, of its metrics and of its process. */
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

/** A JSON number of USD as nano-USD, which it has at most nine decimals for. */
const nano = (usd: number): bigint => BigInt(usd.toFixed(9).replace(".", ""))

/** What `GET /credits` says, in nano-USD. */
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

/** For ten seconds at most. */
const polling = Schedule.intersect(Schedule.spaced("20 millis"), Schedule.recurs(500))

type AccountOptions = Parameters<typeof openAccount>[0]
const plenty = 100_000_000_000n

/** A customer with an account of its own and the official client on its default settings, retries aside. */
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
    /** Nano-USD charged by now, where nothing is held any more. */
    spent: Effect.orDie(spent),
    /** The same where nobody waited for the end of the work. */
    spentInTheEnd: Effect.orDie(Effect.retry(spent, polling))
  }
})

export type Customer = Effect.Effect.Success<ReturnType<typeof customer>>

/** The log's row of a request, which is written shortly after its answer. */
export const logged = Effect.fnUntraced(function* (requestId: string | null | undefined) {
  const sql = yield* SqlClient.SqlClient
  return yield* Effect.flatMap(
    sql`SELECT * FROM request_log WHERE request_id = ${requestId ?? ""}`,
    Schema.decodeUnknown(Schema.Tuple(RequestRow))
  ).pipe(
    Effect.retry(polling),
    Effect.orDie,
    Effect.map(([row]) => row)
  )
})

/** Who is still asking at the end of a test has lost interest. */
const atOnce = { SHUTDOWN_DELAY: "0", SHUTDOWN_TIMEOUT: "1" }

/** What happens at a step between movements of money. */
type Reach = (name: FailpointName) => Effect.Effect<void>

/**
 * Serves with these settings in this process until the scope ends, on a free port unless they name one. Its runtime is
 * its own: no clock, layer or logger of the test reaches it.
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
    /** Interrupts what is in flight, as a stop does whose time is over. */
    abort: Effect.promise(() => runtime.runPromise(Effect.flatMap(InFlight, ({ abort }) => abort)))
  }
})
