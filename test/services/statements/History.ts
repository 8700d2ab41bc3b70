/** Random histories of an organization, written as rows, and what its statements must say by a plain model. */

import { SqlClient } from "@effect/sql"
import { Effect, FastCheck as fc } from "effect"
import { addCharges } from "../../../src/services/statements/Statements.ts"
import { logIdAt } from "../../harness/LogId.ts"

export const months = ["2025-03", "2025-04", "2025-05", "2025-06"]
const begin = Date.parse("2025-03-28T00:00:00Z")
const end = Date.parse("2025-07-01T00:00:00Z")

/** Time that passes before an event: a duration, or up to the edge of the month. */
const pause = fc.oneof(
  fc.constantFrom(0, 1, 600_000, 3_599_999, 86_400_000, 9 * 86_400_000),
  fc.constantFrom<"last moment" | "first moment">("last moment", "first moment")
)
const amount = fc.bigInt({ min: 1n, max: 9_007_199_254_740_993n })

const event = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant<"charge">("charge"),
      amount: fc.oneof(fc.constant(0n), amount),
      model: fc.constantFrom("m", "n"),
      surface: fc.constantFrom("chat", "image"),
      tokens: fc.option(fc.nat(1000)),
      isLogged: fc.boolean(),
      took: fc.constantFrom(0, 5, 7_200_000)
    })
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom<"top_up" | "adjustment">("top_up", "adjustment"), amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant<"payment_reversal">("payment_reversal"), amount }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant<"refund">("refund"), of: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom<"remove" | "add">("remove", "add") }) }
)

export const history = fc.array(fc.tuple(pause, event), { minLength: 10, maxLength: 60 })
export type History = typeof history extends fc.Arbitrary<infer A> ? A : never

interface Moved {
  readonly at: number
  readonly kind: string
  readonly amount: bigint
  readonly hold: string
  readonly line: string
  readonly counts: ReadonlyArray<number>
}

const monthOf = (at: number) => new Date(at).toISOString().slice(0, 7)

const edgeAfter = (at: number) => {
  const date = new Date(at)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

const advance = (at: number, by: number | "last moment" | "first moment") => {
  if (typeof by === "number") return at + by
  return by === "first moment" ? edgeAfter(at) : edgeAfter(at + 1) - 1
}

/** What the statement of a month must say. */
export const expected = (moved: ReadonlyArray<Moved>, month: string) => {
  const sum = (of: ReadonlyArray<Moved>) => of.reduce((total, { amount }) => total + amount, 0n)
  const own = moved.filter(({ at }) => monthOf(at) === month)
  const ofKind = (kind: string) => own.filter((one) => one.kind === kind).map(({ amount }) => amount)
  const usage = new Map<string, { charge: bigint; counts: ReadonlyArray<number> }>()
  for (const { amount, counts, kind, line } of own) {
    if (kind !== "charge") continue
    const before = usage.get(line) ?? { charge: 0n, counts: counts.map(() => 0) }
    usage.set(line, {
      charge: before.charge - amount,
      counts: before.counts.map((count, index) => count + (counts[index] ?? 0))
    })
  }
  return {
    opening: sum(moved.filter(({ at }) => monthOf(at) < month)),
    closing: sum(moved.filter(({ at }) => monthOf(at) <= month)),
    payments: ofKind("top_up"),
    reversals: ofKind("payment_reversal"),
    refunds: ofKind("refund"),
    adjustments: ofKind("adjustment"),
    usage: Object.fromEntries(usage)
  }
}

/** Lets the history happen; `check` runs whenever rows were removed or added up, and at the end. */
export const play = <E, R>(
  org: string,
  events: History,
  check: (moved: ReadonlyArray<Moved>) => Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const moved: Array<Moved> = []
    let now = begin
    yield* sql`INSERT INTO organizations (id, name, created_at) VALUES (${org}, ${org}, ${new Date(begin)})`

    const enter = (entry: Moved, row: Readonly<Record<string, unknown>> = {}) => {
      moved.push(entry)
      const kind = entry.kind === "refund" ? "adjustment" : entry.kind
      const columns = { org_id: org, at: new Date(entry.at), kind, amount: entry.amount, ...row }
      return sql`INSERT INTO ledger_entries ${sql.insert(columns)}`.pipe(
        Effect.zipRight(sql`UPDATE organizations SET balance = balance + ${entry.amount} WHERE id = ${org}`)
      )
    }

    for (const [by, event] of events) {
      now = Math.min(advance(now, by), end - 1)
      const hold = logIdAt(event.do === "charge" ? now - event.took : now)
      const plain = { at: now, hold, line: "", counts: [] }
      switch (event.do) {
        case "charge": {
          const { amount, isLogged, model, surface, took } = event
          const tokens = event.tokens ?? 0
          if (isLogged) {
            yield* sql`INSERT INTO request_log ${sql.insert({
              id: hold,
              request_id: "r",
              at: new Date(now - took),
              surface,
              status: 200,
              org_id: org,
              key_id: "key",
              model,
              prompt_tokens: event.tokens,
              completion_tokens: event.tokens,
              hold_id: hold,
              charge: amount,
              total_ms: 1
            })}`
          }
          const line = isLogged ? `${model} ${surface}` : "null null"
          const counts = isLogged ? [1, tokens, tokens, surface === "image" ? 1 : 0] : [1, 0, 0, 0]
          const entry = { at: now, kind: "charge", amount: -amount, hold, line, counts }
          yield* enter(entry, { hold_id: hold, key_id: "key", held: amount, held_at: new Date(now) })
          break
        }
        case "refund": {
          const charges = moved.filter(({ amount, kind }) => kind === "charge" && amount < 0n)
          const charge = charges[event.of % charges.length]
          if (charge === undefined || moved.some((one) => one.kind === "refund" && one.hold === charge.hold)) break
          yield* enter(
            { ...plain, kind: "refund", amount: -charge.amount, hold: charge.hold },
            { ref: `refund:${charge.hold}` }
          )
          yield* sql`UPDATE request_log SET charge = 0 WHERE id = ${charge.hold}`
          break
        }
        case "payment_reversal":
          yield* enter({ ...plain, kind: event.do, amount: -event.amount }, { ref: hold })
          break
        case "top_up":
          yield* enter({ ...plain, kind: event.do, amount: event.amount })
          break
        case "adjustment":
          yield* enter({ ...plain, kind: event.do, amount: -event.amount })
          break
        case "remove":
          yield* sql`DELETE FROM request_log WHERE org_id = ${org}`
          yield* check(moved)
          break
        case "add":
          yield* addCharges(new Date(now))
          yield* check(moved)
      }
    }
    yield* check(moved)
    yield* addCharges()
    yield* check(moved)
    return moved
  })
