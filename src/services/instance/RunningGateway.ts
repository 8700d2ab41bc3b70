import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Array as Arr, Clock, Context, Effect, Layer, Option, Order, Schema } from "effect"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/ResourceRecord.ts"
import { isProcessAlive, makeFolders } from "../runtime/System.ts"
import { Timings } from "../runtime/Timings.ts"
import { recordsOf, rowsOf } from "../sql/SqlStatement.ts"
import { beatAgeOf, InstanceState, stateOf } from "./Instance.ts"

/** The record of a running gateway, from which commands on the same machine read its address. */
const RunningGateway = Schema.Struct({
  /** The host name, because containers may share a data directory. */
  host: Schema.String,
  pid: Schema.Number,
  /** Unix milliseconds. */
  startedAt: Schema.Number,
  /** The address for clients on this machine. */
  url: Schema.String,
  /** The base URL of links to the gateway. */
  publicUrl: Schema.String
})
export type RunningGateway = typeof RunningGateway.Type

const Text = Schema.parseJson(RunningGateway)
const encode = Schema.encodeSync(Text)
const decode = Schema.decodeUnknownOption(Text)

const directoryOf = (dataDir: string) => path.join(dataDir, "instances")

/** Returns the records of this machine's gateways with their files, including those of ended processes. */
const readAll = (dataDir: string) =>
  Effect.promise(async () => {
    const names = await readdir(directoryOf(dataDir)).catch(() => [])
    const files = names.filter((name) => name.endsWith(".json")).map((name) => path.join(directoryOf(dataDir), name))
    const read = async (file: string) =>
      Option.map(decode(await readFile(file, "utf8").catch(() => "")), (gateway) => ({ file, gateway }))
    return Arr.getSomes(await Promise.all(files.map(read))).filter(({ gateway }) => gateway.host === hostname())
  })

/**
 * Writes the gateway's address for commands, because their environment may set another port. A failure is only logged: the
 * gateway also runs without a writable data directory.
 */
export const recordRunning = Effect.fn("RunningGateway.record")(function* (
  dataDir: string,
  addresses: Pick<RunningGateway, "url" | "publicUrl">,
  pid: number
) {
  const endedGateways = (yield* readAll(dataDir)).filter(({ gateway }) => !isProcessAlive(gateway.pid))
  const file = path.join(directoryOf(dataDir), `${pid}.json`)
  const partialFile = `${file}.${process.pid}.part`
  const text = encode({ ...addresses, host: hostname(), pid, startedAt: yield* Clock.currentTimeMillis })
  const write = async () => {
    await Promise.allSettled(endedGateways.map(({ file }) => rm(file)))
    await makeFolders(directoryOf(dataDir))
    await writeFile(partialFile, text)
    await rename(partialFile, file)
  }
  yield* Effect.catchAll(Effect.tryPromise(write), ({ error }) =>
    Effect.logDebug(`Commands cannot find this gateway's address: ${String(error)}`)
  )
})

const newestFirst = Order.reverse(Order.mapInput(Order.number, ({ startedAt }: RunningGateway) => startedAt))

const isHealthy = ({ url }: RunningGateway) =>
  Effect.tryPromise(async (signal) => (await fetch(`${url}/healthz`, { signal })).ok).pipe(
    Effect.timeout("2 seconds"),
    Effect.orElseSucceed(() => false)
  )

/** Finds the newest running gateway of this machine that uses the data directory. */
export const findRunning = Effect.fn("RunningGateway.find")(function* (dataDir: string) {
  const runningGateways = (yield* readAll(dataDir))
    .map(({ gateway }) => gateway)
    .filter(({ pid }) => isProcessAlive(pid))
  return yield* Effect.findFirst(runningGateways.toSorted(newestFirst), (gateway) => isHealthy(gateway))
})

/** The catalog fields are null for instances that do not report them: an older version, or a stopped one. */
export const InstanceRecord = Schema.Struct({
  id: Schema.String,
  host: TextOrNull,
  pid: Schema.NullOr(Schema.Number),
  fingerprint: TextOrNull.annotations({ description: "The fingerprint of the catalog that it serves." }),
  models: Schema.NullOr(Schema.Number),
  problem: TextOrNull.annotations({ description: "Why its last reload failed; it still serves the previous catalog." }),
  generation: Schema.NullOr(Schema.Number).annotations({
    description: "The number of the last catalog reload that it applied."
  }),
  read_at: TimeOrNull,
  state: InstanceState.annotations({
    description:
      "`silent`: its heartbeat is overdue. `dead`: overdue for so long that other instances release its holds."
  }),
  started_at: UnixSeconds,
  beat_at: UnixSeconds,
  beat_age_seconds: Schema.Number.annotations({
    description: "The seconds since its last heartbeat, which is due every 5 seconds."
  }),
  stopped_at: TimeOrNull
}).annotations({ identifier: "Instance" })
export type InstanceRecord = typeof InstanceRecord.Type

const Generation = Schema.Struct({ generation: Schema.Number })

const maxListed = 1000

export class Instances extends Context.Tag("gateway/Instances")<
  Instances,
  {
    /** The instances with a heartbeat or a stop within the last day; newest first. */
    readonly list: Effect.Effect<ReadonlyArray<InstanceRecord>>
    /**
     * Makes every instance reload its catalog within two seconds. Returns the reload's number, which instances report as
     * `generation`.
     */
    readonly requestReload: Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.effect(
    Instances,
    Effect.map(Effect.all([SqlClient.SqlClient, Timings]), ([sql, timings]) => {
      const list = recordsOf(InstanceRecord)(sql`
        SELECT i.id, i.started_at, i.beat_at, i.stopped_at, ${sql.literal(beatAgeOf("i"))} AS beat_age_seconds,
          ${sql.literal(stateOf("i", timings))} AS state,
          c.host, c.pid, c.fingerprint, c.models, c.problem, c.generation, c.read_at
        FROM instances i LEFT JOIN instance_catalogs c ON c.instance_id = i.id
        WHERE coalesce(i.stopped_at, i.beat_at) > now() - interval '1 day'
        ORDER BY i.started_at DESC, i.id LIMIT ${maxListed}`)
      const requestReload = Effect.flatMap(
        rowsOf(Generation)(sql`UPDATE catalog_generation SET generation = generation + 1 RETURNING generation`),
        ([row]) => (row === undefined ? Effect.dieMessage("no generation") : Effect.succeed(row.generation))
      )
      return Instances.of({
        list: Effect.withSpan(list, "Instances.list"),
        requestReload: Effect.withSpan(requestReload, "Instances.requestReload")
      })
    })
  )
}
