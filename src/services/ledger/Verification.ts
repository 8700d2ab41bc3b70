import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Data, Duration, Effect, Layer, Queue, Schema, Scope, Stream, Struct, Take } from "effect"
import { OwnConnection, type Row, rowsOf } from "../sql/SqlStatement.ts"
import { type Invariant, invariants } from "./Invariants.ts"

export interface Proof {
  readonly invariant: string
  readonly violations: ReadonlyArray<Row>
  /** The number of all violations, including unlisted ones. */
  readonly count: number
  readonly millis: number
}

const Counts = Schema.Struct({
  organizations: Schema.Number,
  entries: Schema.Number,
  holds: Schema.Number,
  /** The time of the snapshot. */
  at: Schema.DateFromSelf
})
export type Counts = typeof Counts.Type

const ViolationCount = Schema.Struct({ violatingRows: Schema.NumberFromString })
const decodeCount = Schema.decodeUnknownSync(ViolationCount)

const checkInvariant = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { check, name }: Invariant,
  maxRows?: number
) {
  const [text, values] = check.compile()
  const query = sql.unsafe<Row>(
    `SELECT broken.*, count(*) OVER () AS violating_rows FROM (${text}) AS broken LIMIT ${maxRows ?? "ALL"}`,
    values
  )
  const [duration, rows] = yield* Effect.timed(query)
  const [first] = rows
  return {
    invariant: name,
    violations: rows.map((row) => Struct.omit(row, "violatingRows")),
    count: first === undefined ? 0 : decodeCount(first).violatingRows,
    millis: Math.round(Duration.toMillis(duration))
  }
})

/** Verifies all invariants on one snapshot. Each proof lists at most `maxViolations`. */
export const verify = <E>(
  sql: SqlClient.SqlClient,
  onProof: (proof: Proof) => Effect.Effect<unknown, E>,
  maxViolations?: number
): Effect.Effect<Counts, E | SqlError.SqlError> =>
  Effect.gen(function* () {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
    // A snapshot blocks no writer, so it may idle while a client reads.
    yield* sql`SET LOCAL idle_in_transaction_session_timeout = '1min'`
    for (const invariant of invariants(sql)) yield* onProof(yield* checkInvariant(sql, invariant, maxViolations))
    const [counts] = yield* rowsOf(Counts)(sql`
      SELECT (SELECT count(*) FROM organizations)::int AS organizations,
        (SELECT count(*) FROM ledger_entries)::int AS entries, (SELECT count(*) FROM all_holds)::int AS holds, now() AS at`)
    return counts ?? (yield* Effect.dieMessage("no counts were returned"))
  }).pipe(sql.withTransaction, Effect.withSpan("Verification.verify"))

class VerificationRunning extends Data.TaggedError("VerificationRunning")<{}> {
  override get message() {
    return "A verification is already running. Wait until it finishes."
  }
}

const maxListed = 20

/**
 * Verifies the ledger on request of the admin API; the CLI calls `verify` itself. Each run has its own connection, and
 * runs do not overlap.
 */
export class Verification extends Context.Tag("gateway/Verification")<
  Verification,
  {
    readonly invariants: ReadonlyArray<string>
    /** Emits each proof, then the counts. The run ends with its scope. */
    readonly start: Effect.Effect<Stream.Stream<Proof | Counts>, VerificationRunning, Scope.Scope>
  }
>() {
  static readonly layer = Layer.effect(
    Verification,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { connect } = yield* OwnConnection
      let isRunning = false

      const acquireRun = Effect.acquireRelease(
        Effect.suspend(() => {
          if (isRunning) return new VerificationRunning()
          isRunning = true
          return Effect.void
        }),
        () => Effect.sync(() => (isRunning = false))
      )

      return Verification.of({
        invariants: invariants(sql).map(({ name }) => name),
        start: Effect.gen(function* () {
          yield* acquireRun
          const connection = yield* Scope.make()
          const client = yield* Effect.orDie(Scope.extend(connect, connection))
          // Unbounded, because a slow client must not keep the transaction open.
          const steps = yield* Queue.unbounded<Take.Take<Proof | Counts>>()
          const publish = (step: Proof | Counts) => Queue.offer(steps, Take.of(step))
          yield* verify(client, publish, maxListed).pipe(
            Effect.flatMap(publish),
            Effect.orDie,
            Effect.matchCauseEffect({
              onFailure: (cause) => Queue.offer(steps, Take.failCause(cause)),
              onSuccess: () => Queue.offer(steps, Take.end)
            }),
            Effect.forkScoped
          )
          // Closes the connection first, because interrupting the fiber would wait for its statement.
          yield* Effect.addFinalizer((exit) => Scope.close(connection, exit))
          return Stream.flattenTake(Stream.fromQueue(steps))
        })
      })
    })
  )
}
