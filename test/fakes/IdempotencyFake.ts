import { Clock, Context, Duration, Effect, Layer, Ref } from "effect"
import { IdempotencyConflict, InvalidRequest } from "../../src/domain/Failure.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { type FirstClaim, Idempotency } from "../../src/services/idempotency/Idempotency.ts"
import type { IdempotentRequest, KeptResult } from "../../src/services/idempotency/Statements.ts"
import { IdempotencyBench } from "../contracts/IdempotencyBench.ts"

interface Row extends IdempotentRequest {
  readonly claim: number
  readonly process: number
  readonly state: "working" | "bound" | "done"
  readonly result: KeptResult | undefined
  readonly at: number
}

interface State {
  /** By organization, endpoint and key. */
  readonly rows: ReadonlyMap<string, Row>
  /** Results that no key has any more. */
  readonly aside: ReadonlyArray<KeptResult>
  readonly dead: ReadonlySet<number>
}

const day = Duration.toMillis("24 hours")
const nameOf = ({ endpoint, key, org }: Omit<IdempotentRequest, "fingerprint">) => `${org} ${endpoint} ${key}`

/** Keys in memory with the semantics of the real ones; its bench arranges what happens to them. */
export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const state = yield* Ref.make<State>({ rows: new Map(), aside: [], dead: new Set() })
    const counter = yield* Ref.make(0)
    const next = Ref.updateAndGet(counter, (n) => n + 1)

    const replace = (now: State, name: string, row: Row | undefined): State => {
      const rows = new Map(now.rows)
      const old = rows.get(name)
      if (row === undefined) rows.delete(name)
      else rows.set(name, row)
      const isLost = old?.result !== undefined && old.claim !== row?.claim
      return { ...now, rows, aside: isLost ? [...now.aside, old.result] : now.aside }
    }

    const idempotencyOf = (process: number): Idempotency["Type"] => {
      const take = (request: IdempotentRequest, claim: number, at: number) =>
        Ref.modify(state, (now): readonly [Row, State] => {
          const name = nameOf(request)
          const old = now.rows.get(name)
          const fresh: Row = { ...request, claim, process, state: "working", result: undefined, at }
          if (old === undefined) return [fresh, replace(now, name, fresh)]
          const isOver = old.state === "done" || now.dead.has(old.process)
          const isFree = isOver && (old.state === "working" || at - old.at >= day)
          const row = isFree ? fresh : isOver ? { ...old, state: "done" as const } : old
          return [row, replace(now, name, row)]
        })

      /** Changes the row if the claim still has it; says whether it does. */
      const change = (claim: number, to: (row: Row) => Row | undefined) =>
        Ref.modify(state, (now): readonly [boolean, State] => {
          const found = [...now.rows].find(([, row]) => row.claim === claim)
          return found === undefined ? [false, now] : [true, replace(now, found[0], to(found[1]))]
        })

      const first = (claim: number): FirstClaim => ({
        _tag: "First",
        keep: (result) => Effect.asVoid(change(claim, (row) => ({ ...row, state: "done", result }))),
        bind: (result) =>
          Effect.filterOrFail(
            change(claim, (row) => ({ ...row, state: row.state === "done" ? "done" : "bound", result })),
            (isMine) => isMine,
            () => new IdempotencyConflict()
          ),
        free: Effect.asVoid(change(claim, () => undefined))
      })

      return Idempotency.of({
        claim: Effect.fnUntraced(function* (request) {
          const claim = yield* next
          const row = yield* Effect.acquireRelease(
            Effect.flatMap(Clock.currentTimeMillis, (at) => take(request, claim, at)),
            () => change(claim, (mine) => (mine.state === "working" ? undefined : { ...mine, state: "done" }))
          )
          if (row.claim === claim) return first(claim)
          if (row.fingerprint !== request.fingerprint) {
            return yield* new InvalidRequest({
              message: "This `Idempotency-Key` was used with a different request.",
              param: null
            })
          }
          if (row.state !== "done") return yield* new IdempotencyConflict()
          return { _tag: "Replay", result: row.result } as const
        }),
        isKnown: (request) => Effect.map(Ref.get(state), (now) => now.rows.has(nameOf(request))),
        prune: Effect.fnUntraced(function* (olderThan, forget) {
          const before = (yield* Clock.currentTimeMillis) - Duration.toMillis(olderThan)
          const now = yield* Ref.get(state)
          const old = [...now.rows].filter(
            ([, row]) => row.at <= before && (row.state === "done" || now.dead.has(row.process))
          )
          yield* Ref.update(state, (all) => old.reduce((left, [name]) => replace(left, name, undefined), all))
          const { aside } = yield* Ref.getAndUpdate(state, (all) => ({ ...all, aside: [] }))
          const left = yield* Effect.filter(aside, (result) => Effect.map(forget(result), (forgotten) => !forgotten))
          yield* Ref.update(state, (all) => ({ ...all, aside: [...all.aside, ...left] }))
          return Math.max(0, old.length - left.length)
        })
      })
    }

    const bench = IdempotencyBench.of({
      organization: Effect.map(next, (n) => OrgId.make(`org_${n}`)),
      payment: () => Effect.map(next, (n) => `hold_${n}`),
      atomically: (statements) =>
        Effect.flatMap(Ref.get(state), (before) => Effect.tapErrorCause(statements, () => Ref.set(state, before))),
      age: (org, by) =>
        Ref.update(state, (now) => ({
          ...now,
          rows: new Map(
            [...now.rows].map(([name, row]) => [
              name,
              row.org === org ? { ...row, at: row.at - Duration.toMillis(by) } : row
            ])
          )
        })),
      another: Effect.map(next, (process) => ({
        idempotency: idempotencyOf(process),
        die: () => Ref.update(state, (now) => ({ ...now, dead: new Set(now.dead).add(process) }))
      }))
    })
    return Context.make(Idempotency, idempotencyOf(0)).pipe(Context.add(IdempotencyBench, bench))
  })
)
