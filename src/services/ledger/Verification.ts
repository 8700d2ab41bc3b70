import { SqlClient, type SqlError } from "@effect/sql"
import { Context, Data, Duration, Effect, Layer, Queue, Schema, Scope, Stream, Struct, Take } from "effect"
import { OwnConnection, type Row, rowsOf } from "../sql/Statement.ts"
import { type Invariant, invariants } from "./Invariants.ts"

export interface Proof {
  readonly invariant: string
  readonly violations: ReadonlyArray<Row>
  /** All violations, listed or not. */
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

const Counted = Schema.Struct({ violatingRows: Schema.NumberFromString })
const isCounted = Schema.decodeUnknownSync(Counted)

const proveOne = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, { check, name }: Invariant, most?: number) {
  const [text, values] = check.compile()
  const counting = sql.unsafe<Row>(
    `SELECT broken.*, count(*) OVER () AS violating_rows FROM (${text}) AS broken LIMIT ${most ?? "ALL"}`,
    values
  )
  const [took, rows] = yield* Effect.timed(counting)
  const [first] = rows
  return {
    invariant: name,
    violations: rows.map((row) => Struct.omit(row, "violatingRows")),
    count: first === undefined ? 0 : isCounted(first).violatingRows,
    millis: Math.round(Duration.toMillis(took))
  }
})

/** Proves all invariants on one snapshot; each proof lists at most `maxViolations`. */
export const verify = <E>(
  sql: SqlClient.SqlClient,
  onProof: (proof: Proof) => Effect.Effect<unknown, E>,
  maxViolations?: number
): Effect.Effect<Counts, E | SqlError.SqlError> =>
  Effect.gen(function* () {
    yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`
    // A snapshot blocks no writer, so it may idle while a client reads.
    yield* sql`SET LOCAL idle_in_transaction_session_timeout = '1min'`
    for (const invariant of invariants(sql)) yield* onProof(yield* proveOne(sql, invariant, maxViolations))
    const [counts] = yield* rowsOf(Counts)(sql`
      SELECT (SELECT count(*) FROM organizations)::int AS organizations,
        (SELECT count(*) FROM ledger_entries)::int AS entries, (SELECT count(*) FROM all_holds)::int AS holds, now() AS at`)
    return counts ?? (yield* Effect.dieMessage("nothing was counted"))
  }).pipe(sql.withTransaction, Effect.withSpan("Verification.verify"))

export class VerificationRunning extends Data.TaggedError("VerificationRunning")<{}> {
  override get message() {
    return "The ledger is being verified already: wait until that is done."
  }
}

const maxShown = 20

/** For a serving instance: on a connection of its own, one run at a time. */
export class Verification extends Context.Tag("gateway/Verification")<
  Verification,
  {
    readonly invariants: ReadonlyArray<string>
    /** Each proof as it is found, then the counts; ends with its scope. */
    readonly start: Effect.Effect<Stream.Stream<Proof | Counts>, VerificationRunning, Scope.Scope>
  }
>() {
  static readonly layer = Layer.effect(
    Verification,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { connect } = yield* OwnConnection
      let isRunning = false

      const occupy = Effect.acquireRelease(
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
          yield* occupy
          const connection = yield* Scope.make()
          const own = yield* Effect.orDie(Scope.extend(connect, connection))
          // The client may read slowly, and a transaction must not stand still meanwhile.
          const steps = yield* Queue.unbounded<Take.Take<Proof | Counts>>()
          const tell = (step: Proof | Counts) => Queue.offer(steps, Take.of(step))
          yield* verify(own, tell, maxShown).pipe(
            Effect.flatMap(tell),
            Effect.orDie,
            Effect.matchCauseEffect({
              onFailure: (cause) => Queue.offer(steps, Take.failCause(cause)),
              onSuccess: () => Queue.offer(steps, Take.end)
            }),
            Effect.forkScoped
          )
          // Before the fiber is interrupted, which would wait for the statement.
          yield* Effect.addFinalizer((exit) => Scope.close(connection, exit))
          return Stream.flattenTake(Stream.fromQueue(steps))
        })
      })
    })
  )
}
