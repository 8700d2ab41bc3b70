import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Either, type Scope } from "effect"
import { type FirstClaim, Idempotency, type Replay } from "../../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { account, anotherProcess, one } from "../../harness/database/MoneyProcess.ts"

type Asked = Parameters<Idempotency["Type"]["claim"]>[0]

export const result = { created: 1, media: "a.png" }

export const isFirst = (claim: FirstClaim | Replay): claim is FirstClaim => claim._tag === "First"
export const first = (claim: FirstClaim | Replay) =>
  isFirst(claim) ? Effect.succeed(claim) : Effect.dieMessage("somebody was first")

/** What an attempt came to, in one word. */
export const outcome = (idempotency: Idempotency["Type"], asked: Asked) =>
  Effect.scoped(idempotency.claim(asked)).pipe(
    Effect.either,
    Effect.map(Either.match({ onLeft: ({ _tag }) => _tag, onRight: ({ _tag }) => _tag }))
  )

/** An organization, and what happens to its idempotency keys. */
export const arranged = Effect.map(account(100n * one), (own) => ({
  ...own,
  /** What paid for a result: a hold that is settled. */
  payment: Effect.map(
    Effect.scoped(
      Effect.tap(Holds.hold(own.ledger, { org: own.org, key: own.key, upTo: one }), (hold) =>
        own.ledger.settle(hold, one)
      )
    ),
    ({ id }) => id
  ),
  /** Makes what the organization's keys have older. */
  age: (by: Duration.DurationInput) => own.sql`
    UPDATE idempotency_keys SET created_at = created_at - ${Duration.toSeconds(by)} * interval '1 second'
    WHERE org_id = ${own.org}`
}))

/** Runs the body under the first claim of a key, which ends with it. */
export const withFirstClaim = (
  asked: Asked,
  body: (claim: FirstClaim) => Effect.fn.Return<unknown, unknown, Idempotency | Scope.Scope>
) =>
  Effect.flatMap(Idempotency, ({ claim }) => Effect.flatMap(claim(asked), first)).pipe(
    Effect.flatMap(Effect.fnUntraced(body)),
    Effect.scoped
  )

/** How a process can be gone: its holds released, stopped in order, silent for a minute, or unheard of. */
export const deaths = ["swept", "stopped", "silent", "unknown"] as const

/** Another process of the gateway on the same database, which can seem to have died. */
export const mortalProcess = Effect.gen(function* () {
  const context = yield* anotherProcess
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  /** What it works on goes to a process that is gone; its own heart would go on beating. */
  const die = Effect.fnUntraced(function* (how: (typeof deaths)[number]) {
    const gone = ids.uuid()
    if (how !== "unknown") yield* sql`INSERT INTO instances (id) VALUES (${gone})`
    if (how === "swept") yield* sql`UPDATE instances SET swept_at = now() WHERE id = ${gone}`
    if (how === "stopped") yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${gone}`
    if (how === "silent") yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${gone}`
    const id = yield* Context.get(context, Instance).id
    yield* sql`UPDATE idempotency_keys SET instance_id = ${gone} WHERE instance_id = ${id}`
  })
  return { idempotency: Context.get(context, Idempotency), ledger: Context.get(context, Ledger), die }
})
