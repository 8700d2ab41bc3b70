import { SqlClient } from "@effect/sql"
import { Data, Effect, FastCheck as fc, Layer, Runtime, Schedule } from "effect"
import { fillingLock, fillUsage } from "../../src/services/ledger/LedgerAdmin.ts"
import { OwnConnection } from "../../src/services/sql/SqlStatement.ts"
import { countUsage, Usage, type UsageQuery } from "../../src/services/telemetry/Usage.ts"
import { runs } from "../harness/Cases.ts"
import { times } from "../harness/database/Money.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { assert, describe, liveOver } from "../harness/It.ts"
import { logIdAt } from "../harness/LogId.ts"
import { assertExact, insert, insertBy, leaveUncounted, queued } from "../services/telemetry/UsageRows.ts"

const hour = 3_600_000
const begin = Date.parse("2026-03-01T00:00:00Z")
const hours = 50
const writers = 3

class Undone extends Data.TaggedError("Undone")<{}> {}

type Command =
  | {
      readonly do: "insert"
      readonly by: number
      readonly at: ReadonlyArray<number>
      readonly model: string
      readonly tag: string | undefined
    }
  | { readonly do: "change"; readonly by: number; readonly row: number; readonly status: number }
  | { readonly do: "end"; readonly by: number; readonly how: "COMMIT" | "ROLLBACK" }
  | { readonly do: "count"; readonly most: number }
  | { readonly do: "fill" }
  | { readonly do: "stop counting" }

const by = fc.nat(writers - 1)
const moment = fc.integer({ min: 0, max: hours * 4 }).map((quarter) => begin + (quarter * hour) / 4)
const status = fc.constantFrom(200, 404, 502)

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant<"insert">("insert"),
      by,
      at: fc.array(moment, { minLength: 1, maxLength: 4 }),
      model: fc.constantFrom("m", "n"),
      tag: fc.constantFrom(undefined, "blue", "red", "other")
    })
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant<"change">("change"), by, row: fc.nat(20), status }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant<"end">("end"),
      by,
      how: fc.constantFrom<"COMMIT" | "ROLLBACK">("COMMIT", "COMMIT", "ROLLBACK")
    })
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant<"count">("count"), most: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"fill">("fill") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"stop counting">("stop counting") }) }
)

const query: fc.Arbitrary<UsageQuery> = fc.record({
  by: fc.constantFrom<"model" | "hour" | "day" | "tag">("model", "hour", "day", "tag"),
  since: fc.option(moment, { nil: undefined }),
  until: fc.option(
    moment.map((at) => at + 1),
    { nil: undefined }
  )
})

const services = Usage.layer.pipe(Layer.provideMerge(Postgres.layer))

/** Counts nothing; half of the time belongs to before there were totals. */
const reset = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`TRUNCATE request_log, usage_series, usage_totals, usage_tags, usage_tag_series, usage_tag_totals,
    uncounted_requests RESTART IDENTITY`
  // The second day has room for one tag more.
  yield* sql`INSERT INTO usage_tags (day, org_id, tag, number)
    SELECT '2026-03-02', 'org', 'tag ' || i, i FROM generate_series(1, 999) AS i`
  yield* sql`UPDATE usage_bounds SET filled_from = ${new Date(begin + (hours / 2) * hour)}`
  yield* leaveUncounted
})

/** Who counts, and who changed something, keeps others waiting: no command is begun then. */
const isFree = (sql: SqlClient.SqlClient) =>
  Effect.map(
    sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = ${fillingLock}::bigint - (1::bigint << 32)
      AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    (locks) => locks.length === 0
  )

const run = Effect.fnUntraced(function* (
  clients: ReadonlyArray<SqlClient.SqlClient>,
  steps: ReadonlyArray<readonly [Command, UsageQuery]>
) {
  const pool = yield* SqlClient.SqlClient
  const clientOf = (index: number) => clients[index] ?? pool
  const isOpen = clients.map(() => false)
  const begin = Effect.fnUntraced(function* (index: number) {
    if (isOpen[index] === true) return
    isOpen[index] = true
    yield* clientOf(index)`BEGIN`
  })
  const end = Effect.fnUntraced(function* (index: number, how: "COMMIT" | "ROLLBACK") {
    if (isOpen[index] !== true) return
    isOpen[index] = false
    yield* clientOf(index).unsafe(how)
  })
  const execute = Effect.fnUntraced(function* (command: Command) {
    switch (command.do) {
      case "insert":
        yield* begin(command.by)
        return yield* insertBy(
          clientOf(command.by),
          command.at.map((at) => ({ at, id: logIdAt(at), model: command.model, tag: command.tag, status: 404 }))
        )
      case "change": {
        const client = clientOf(command.by)
        if (!(yield* isFree(client))) return
        yield* begin(command.by)
        return yield* client`UPDATE request_log SET charge = charge + 7, status = ${command.status} WHERE id = (
          SELECT id FROM request_log ORDER BY id LIMIT 1 OFFSET ${command.row})`
      }
      case "end":
        return yield* end(command.by, command.how)
      case "count":
        return (yield* isFree(pool)) && (yield* pool`SELECT count_uncounted(${command.most})`)
      case "fill":
        return (yield* isFree(pool)) && (yield* pool`SELECT fill_usage()`)
      case "stop counting":
        return yield* pool`UPDATE usage_counter SET counted_at = '-infinity'`
    }
  })
  yield* reset
  for (const [command, query] of steps) {
    yield* execute(command)
    yield* assertExact(query)
  }
  for (const index of clients.keys()) yield* end(index, "COMMIT")
  yield* assertExact()
  yield* countUsage
  yield* fillUsage
  assert.strictEqual(yield* queued, 0)
  yield* assertExact({ by: "day" }, { by: "tag" })
})

const seed = process.env["MODEL_SEED"] === undefined ? {} : { seed: Number(process.env["MODEL_SEED"]) }

describe.concurrent("the totals of usage", () => {
  liveOver(services)(
    "are exact after each step of writers, counters and reports, in whatever order",
    function* () {
      const { connect } = yield* OwnConnection
      const clients = yield* Effect.forEach(times(writers), () => connect)
      const runPromise = Runtime.runPromise(yield* Effect.runtime<Layer.Layer.Success<typeof services>>())
      const property = fc.asyncProperty(fc.array(fc.tuple(command, query), { minLength: 5, maxLength: 14 }), (steps) =>
        runPromise(run(clients, steps))
      )
      yield* Effect.promise(() =>
        fc.assert(property, { numRuns: Math.max(3, Math.ceil(runs(400) / 20)), endOnFailure: true, ...seed })
      )
    },
    300_000
  )

  liveOver(services)("are exact in every snapshot while many write, change, count and fill", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* reset
    const write = (writer: number) =>
      Effect.forEach(times(15), (round) => {
        const rows = times(8).map((index) => ({
          at: begin + ((writer * 7 + round * 5 + index * 3) % hours) * hour,
          key: `key ${(writer + index) % 3}`,
          model: `model ${(round + index) % 4}`,
          tag: index % 3 === 0 ? `tag ${index}` : undefined,
          status: index % 4 === 0 ? 404 : 200
        }))
        const change = sql`UPDATE request_log SET charge = charge + 1, status = 499 WHERE id IN (
          SELECT id FROM request_log WHERE status <> 499 ORDER BY id DESC LIMIT 3 FOR UPDATE SKIP LOCKED)`
        const both = round % 3 === 0 ? insert(rows) : Effect.zipRight(insert(rows), change)
        const transaction = round % 5 === 4 ? Effect.zipRight(both, Effect.fail(new Undone())) : Effect.asVoid(both)
        return Effect.catchTag(sql.withTransaction(transaction), "Undone", () => Effect.void)
      })
    const often = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.repeat(Effect.uninterruptible(effect), Schedule.spaced("5 millis"))
    yield* Effect.raceFirst(
      Effect.all(times(5).map(write), { concurrency: "unbounded", discard: true }),
      Effect.all(
        [
          often(countUsage),
          often(countUsage),
          often(sql`SELECT fill_usage()`),
          often(assertExact({ by: "hour" }, { by: "tag" }))
        ],
        { concurrency: "unbounded", discard: true }
      )
    )
    yield* assertExact()
    yield* countUsage
    assert.strictEqual(yield* queued, 0)
    yield* assertExact()
  })
})
