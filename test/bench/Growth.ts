import { SqlClient } from "@effect/sql"
import { Array as Arr, Context, Duration, Effect, Layer, Order, Redacted } from "effect"
import * as Pg from "pg"
import { Database } from "../../src/database/Database.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import * as ClosingSql from "../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../src/services/ledger/HoldSql.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { minimalLogRow } from "../../src/services/requests/RequestEntry.ts"
import { Ids } from "../../src/services/runtime/Ids.ts"
import { runWith } from "../../src/services/sql/SqlStatement.ts"
import { freshUrl } from "../harness/database/Postgres.ts"
import { type Command, commands, services } from "./Commands.ts"
import * as Footprint from "./Footprint.ts"
import { fill, fillAccounts, instanceId, keyId, keys, organizationOf, type Size } from "./GrownDatabase.ts"
import { makeRecorder, measure, median, type Planning, type Recorded, type Work } from "./Plans.ts"
import { reports } from "./RangeReports.ts"
import * as Statistics from "./Statistics.ts"

export interface Options {
  readonly size: Size
  /** A migrated database, which is filled if it has no holds; undefined: a scratch one. */
  readonly url: string | undefined
  /** Whether the time matters: otherwise each statement is explained once. */
  readonly isLong: boolean
}

interface Asked extends Command {
  readonly statements: ReadonlyArray<Recorded>
}

interface Measured extends Command {
  readonly work: Work
  readonly planning: Planning
  readonly statistics: Statistics.Kind
}

const plannings = ["force_custom_plan", "force_generic_plan"] as const

class Undone extends Error {}

/** Runs the effect and undoes what it did to the database. */
const undone = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.zipRight(effect, Effect.fail(new Undone())).pipe(
      sql.withTransaction,
      Effect.catchIf(
        (error) => error instanceof Undone,
        () => Effect.void
      )
    )
  )

const connect = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => new Pg.Client(url).connect()),
    (client) => Effect.promise(() => client.end())
  )

const query = (client: Pg.Client, text: string) => Effect.promise(() => client.query(text))

const database = (url: string, maxConnections: number) =>
  Layer.orDie(Database.layerUrl(Redacted.make(url), { maxConnections, queryTimeout: "1 hour" }))

const print = (line: string) => Effect.sync(() => void process.stdout.write(`${line}\n`))

const number = (value: number) => value.toFixed(value < 10 ? 2 : 0).padStart(9)

const row = ({ name, planning, work: { blocks, millis, rowsRead, scans } }: Measured) =>
  `${name.padEnd(42)}${planning.slice(6, 9)}${number(millis)}${String(blocks).padStart(9)}${String(rowsRead).padStart(10)}  ${
    millis > 100 ? "SLOW " : ""
  }${scans.join(", ")}`

/** Finds out what each command asks the database, and what that costs the server. */
const measureAll = Effect.fnUntraced(function* (url: string, { isLong, size }: Options) {
  const recorder = makeRecorder()
  const client = yield* connect(url)
  // Tables of this size would be read whole.
  if (!isLong) yield* query(client, "SET enable_seqscan = off")
  const context = yield* Layer.build(
    services.pipe(Layer.provideMerge(database(url, 4)), Layer.provideMerge(recorder.layer))
  )
  return yield* Effect.gen(function* () {
    const measured: Array<Measured> = []
    const record = Effect.fnUntraced(function* (command: Command) {
      const statements = yield* recorder.during(undone(command.run))
      if (statements.length === 0) return yield* Effect.dieMessage(`${command.name} asked the database nothing`)
      return { ...command, statements } satisfies Asked
    })
    const add = Effect.fnUntraced(function* (asked: Asked, statistics: Statistics.Kind, times: number) {
      for (const planning of plannings) {
        const work = yield* measure(client, asked.statements, planning, times)
        const one = { ...asked, planning, statistics, work }
        measured.push(one)
        if (isLong) yield* print(row(one))
      }
    })
    if (isLong) yield* print(`${"".padEnd(45)}${"ms".padStart(9)}${"blocks".padStart(9)}${"rows".padStart(10)}`)
    const asked = yield* Effect.forEach(yield* commands(size), record)
    for (const one of asked) yield* add(one, "fresh", isLong ? 5 : 1)
    if (isLong) for (const report of yield* Effect.forEach(yield* reports, record)) yield* add(report, "fresh", 1)
    for (const statistics of isLong ? [] : (["none", "stale"] as const)) {
      yield* Statistics.gather(client, statistics)
      for (const one of asked) yield* add(one, statistics, 1)
    }
    return measured
  }).pipe(Effect.provide(context), Effect.provide(recorder.layer))
})

const verify = (url: string) =>
  Effect.flatMap(LedgerAdmin, (books) => books.verify).pipe(
    Effect.provide(Layer.provide(LedgerAdmin.layer, database(url, 1))),
    Effect.timed
  )

/** Milliseconds of holding and settling as chats do, in turns in several databases so that all see the same machine. */
const pace = Effect.fnUntraced(function* (urls: ReadonlyArray<string>, batchSize: number, rounds: number) {
  const ids = yield* Ids
  const sides = yield* Effect.forEach(urls, (url) =>
    Effect.map(Layer.build(database(url, 1)), (context) => ({
      sql: Context.get(context, SqlClient.SqlClient),
      holding: Array<number>(),
      settling: Array<number>()
    }))
  )
  for (let round = 0; round < rounds; round++) {
    for (const { holding, settling, sql } of sides) {
      const batch = Arr.makeBy(batchSize, (offset) => {
        const key = 1 + ((round * batchSize + offset) % keys)
        return {
          id: ids.uuid(),
          org: organizationOf(key),
          key: keyId(key),
          amount: NanoUsd(1_000n),
          rateLimit: 1_000_000
        }
      })
      const charges = batch.map((hold) => ({ ...hold, cost: NanoUsd(500n) }))
      const rows = batch.map((hold) => minimalLogRow(hold))
      holding.push(Duration.toMillis((yield* Effect.timed(runWith(sql, HoldSql.place(instanceId, batch))))[0]))
      settling.push(Duration.toMillis((yield* Effect.timed(runWith(sql, ClosingSql.settle(charges, rows))))[0]))
    }
  }
  const shown = (times: ReadonlyArray<number>) =>
    number(Arr.isNonEmptyReadonlyArray(times) ? median(times, Order.number) : 0)
  return sides.map(({ holding, settling }) => `${shown(holding)}${shown(settling)}`).join("   ")
}, Effect.scoped)

const comparePaces = Effect.fnUntraced(function* (
  url: string,
  rounds: number,
  report: (line: string) => Effect.Effect<void>
) {
  const empty = yield* freshUrl
  yield* fillAccounts(yield* connect(empty))
  yield* report(`\nms to hold and to settle${" ".repeat(18)}without rows        with rows`)
  for (const batchSize of [1, 16, 128]) {
    const paces = yield* pace([empty, url], batchSize, rounds)
    yield* report(`  ${String(batchSize).padStart(3)} at once${" ".repeat(29)}${paces}`)
  }
})

const footprint = Effect.fnUntraced(function* (chats: number) {
  const url = yield* freshUrl
  yield* fillAccounts(yield* connect(url))
  return yield* Effect.flatMap(SqlClient.SqlClient, (sql) => Footprint.measureFootprint(sql, chats)).pipe(
    Effect.provide(database(url, 1))
  )
})

export const run = Effect.fnUntraced(function* (options: Options) {
  const { isLong, size } = options
  const report = isLong ? print : () => Effect.void
  const url = options.url ?? (yield* freshUrl)
  const client = yield* connect(url)
  if (!isLong) yield* Statistics.stopGathering(client)
  const { rows } = yield* query(client, "SELECT FROM holds LIMIT 1")
  if (rows.length === 0) yield* fill(client, size, report)
  const measured = yield* measureAll(url, options)
  yield* comparePaces(url, isLong ? 400 : 1, report)
  const left = yield* footprint(isLong ? 102_400 : 128)
  yield* Effect.forEach(["", ...Footprint.describe(left)], report)
  const [duration, { entries, holds, violations }] = yield* verify(url)
  yield* report(`\nledger verify: ${entries} entries, ${holds} holds: ${Duration.format(duration)}`)
  return { measured, left, violations }
}, Effect.scoped)
