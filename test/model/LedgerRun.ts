import { SqlClient } from "@effect/sql"
import { Context, Effect, Either, Exit, Schema, Scope } from "effect"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { SpendLimitReached } from "../../src/domain/Failure.ts"
import type { Hold } from "../../src/domain/Hold.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { Instance } from "../../src/services/instance/Instance.ts"
import { sweep } from "../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { Refunds } from "../../src/services/ledger/Refunds.ts"
import { Ids } from "../../src/services/runtime/Ids.ts"
import { LedgerBench } from "../contracts/LedgerBench.ts"
import * as Holds from "../harness/database/Holds.ts"
import { anotherWithoutSweeper } from "../harness/database/MoneyProcess.ts"
import { assert } from "../harness/It.ts"
import { type Command, keys, LedgerModel, type ModelHold, orgs, type Verdict } from "./LedgerModel.ts"

const process = Effect.map(anotherWithoutSweeper, (context) => ({
  ledger: Context.get(context, Ledger),
  instance: Context.get(context, Instance),
  refunds: Context.get(context, Refunds)
}))

/** Two processes of the gateway on one database. */
export const processes = Effect.all([process, process])
export type Processes = Effect.Effect.Success<typeof processes>

const Accounts = Schema.Array(Schema.Struct({ balance: Schema.BigInt, held: Schema.BigInt }))
const CapSpends = Schema.Array(Schema.Struct({ capSpent: Schema.NullOr(Schema.BigInt) }))
const Spends = Schema.Array(Schema.Struct({ spent: Schema.BigInt }))
const StoredHolds = Schema.Array(
  Schema.Struct({
    state: Schema.Literal("open", "settled", "released"),
    charged: Schema.NullOr(Schema.BigInt)
  })
)

/** A hold, and what closes the scope of the request that made it. */
interface Held {
  readonly hold: Hold
  readonly scope: Scope.CloseableScope
}

/** The ledger under test, with accounts of its own. */
const arrange = Effect.fnUntraced(function* (both: Processes) {
  const sql = yield* SqlClient.SqlClient
  const books = yield* LedgerAdmin
  const ids = yield* Ids
  const owners = orgs.map(() => OrgId.make(ids.prefixed("org")))
  const payers = keys.map(({ org }) => ({
    key: KeyId.make(ids.prefixed("key")),
    org: owners[org] ?? OrgId.make("")
  }))
  for (const [index, id] of owners.entries()) {
    const cap = orgs[index]?.cap
    yield* sql`INSERT INTO organizations (id, name, cap, cap_period)
      VALUES (${id}, ${id}, ${cap?.amount ?? null}, ${cap?.period ?? null})`
    yield* books.topUp({ org: id, amount: NanoUsd(orgs[index]?.balance ?? 0n) })
  }
  for (const [index, { key, org }] of payers.entries()) {
    const cap = keys[index]?.cap
    yield* sql`INSERT INTO api_keys (id, org_id, hash, cap, cap_period)
      VALUES (${key}, ${org}, decode(md5(${key}), 'hex'), ${cap?.amount ?? null}, ${cap?.period ?? null})`
  }
  const keyIds = payers.map(({ key }) => key)
  return {
    owners,
    payers,
    accounts: Effect.flatMap(
      sql`SELECT balance, held FROM unnest(${owners}::text[]) WITH ORDINALITY AS t (id, place)
        JOIN organizations USING (id) ORDER BY place`,
      Schema.decodeUnknown(Accounts)
    ),
    capSpent: Effect.flatMap(
      sql`SELECT cap_spent FROM unnest(${owners}::text[]) WITH ORDINALITY AS t (id, place)
        JOIN organizations USING (id) ORDER BY place`,
      Schema.decodeUnknown(CapSpends)
    ),
    spent: Effect.flatMap(
      sql`SELECT coalesce(sum(spent), 0)::bigint AS spent FROM unnest(${keyIds}::text[]) WITH ORDINALITY AS t (key_id, place)
        LEFT JOIN key_spend USING (key_id) GROUP BY place ORDER BY place`,
      Schema.decodeUnknown(Spends)
    ),
    stored: (holds: ReadonlyArray<string>) =>
      Effect.flatMap(
        sql`SELECT state, charged FROM unnest(${holds}::uuid[]) WITH ORDINALITY AS t (id, place)
          JOIN all_holds USING (id) ORDER BY place`,
        Schema.decodeUnknown(StoredHolds)
      ),
    orphan: (by: number, holds: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const gone = ids.uuid()
        yield* sql`INSERT INTO instances (id) VALUES (${gone})`
        yield* sql`UPDATE open_holds SET instance_id = ${gone} WHERE id = ANY (${holds}::uuid[]) AND released_at IS NULL
          AND instance_id = ${yield* (both[by] ?? both[0]).instance.id}`
        return gone
      }),
    step: (gone: ReadonlyArray<string>, seconds: number) => sql`
      UPDATE instances SET beat_at = beat_at - ${seconds} * interval '1 second' WHERE id = ANY (${gone}::uuid[])`
  }
})

const verdictOf = (result: Either.Either<unknown, unknown>): Verdict => {
  if (Either.isRight(result)) return "held"
  return result.left instanceof SpendLimitReached ? `${result.left.owner ?? "key"} capped` : "insufficient"
}

/** Statements about jobs are repeated by their callers. */
const untilAlone = <A, E>(statement: Effect.Effect<A, E>) => Effect.retry(statement, { times: 20 })

/** Runs the commands on the ledger and on its model side by side, and fails where they differ. */
export const runCommands = Effect.fnUntraced(function* (both: Processes, commands: ReadonlyArray<Command>) {
  const bench = yield* LedgerBench
  const books = yield* LedgerAdmin
  const ids = yield* Ids
  const world = yield* arrange(both)
  const model = new LedgerModel()
  const held: Array<Held> = []
  const gone: Array<string> = []

  const at = (by: number) => both[by] ?? both[0]
  const chosen = (number: number): { readonly expected: ModelHold; readonly actual: Held } | undefined => {
    const index = number % Math.max(1, held.length)
    const [expected, actual] = [model.holds[index], held[index]]
    return expected === undefined || actual === undefined ? undefined : { expected, actual }
  }
  const payer = (key: number) => world.payers[key] ?? { key: KeyId.make(""), org: OrgId.make("") }

  const hold = Effect.fnUntraced(function* (by: number, key: number, amount: bigint, canReduceHold = false) {
    const scope = yield* Scope.make()
    const made = yield* Effect.either(
      Scope.extend(Holds.hold(at(by).ledger, { ...payer(key), upTo: NanoUsd(amount), canReduceHold }), scope)
    )
    return { verdict: verdictOf(made), made: Either.isRight(made) ? { hold: made.right, scope } : undefined }
  })
  const settle = (by: number, { expected, actual }: NonNullable<ReturnType<typeof chosen>>, cost: bigint) => {
    const { job, settle: settleHold } = at(by).ledger
    return expected.isJob ? untilAlone(job.settle(actual.hold, NanoUsd(cost))) : settleHold(actual.hold, NanoUsd(cost))
  }
  const release = ({ expected, actual }: NonNullable<ReturnType<typeof chosen>>) =>
    expected.isJob ? untilAlone(at(0).ledger.job.release(actual.hold)) : Scope.close(actual.scope, Exit.void)

  const run = Effect.fnUntraced(function* (command: Command) {
    if (command.do === "top up") {
      yield* books.topUp({ org: world.owners[command.org] ?? OrgId.make(""), amount: NanoUsd(BigInt(command.amount)) })
      model.topUp(command.org, BigInt(command.amount))
    } else if (command.do === "hold") {
      const { amount, by, canReduceHold, key } = command
      const expected = model.verdictOf(key, BigInt(amount), canReduceHold)
      const { made, verdict } = yield* hold(by, key, BigInt(amount), canReduceHold)
      assert.strictEqual(verdict, expected)
      if (made !== undefined) {
        held.push(made)
        model.open(command.key, BigInt(command.amount), command.by, false)
      }
    } else if (command.do === "burst") {
      const results = yield* Effect.forEach(
        command.amounts,
        (amount, index) =>
          Effect.map(hold(index % 2, command.key, BigInt(amount)), (result) => ({ ...result, amount, by: index % 2 })),
        { concurrency: "unbounded" }
      )
      // Whatever the order, each that was admitted fits, and each that was not does not fit after them.
      for (const { amount, by, made } of results) {
        if (made === undefined) continue
        assert.strictEqual(model.verdictOf(command.key, BigInt(amount)), "held")
        held.push(made)
        model.open(command.key, BigInt(amount), by, false)
      }
      for (const { amount, made, verdict } of results) {
        if (made === undefined) assert.strictEqual(verdict, model.verdictOf(command.key, BigInt(amount)))
      }
    } else if (command.do === "hold for a job") {
      const expected = model.verdictOf(command.key, BigInt(command.amount))
      const { key, org } = payer(command.key)
      const wanted = { id: ids.uuid(), key, org, amount: NanoUsd(BigInt(command.amount)) }
      const made = yield* Effect.either(at(command.by).ledger.job.hold(wanted))
      assert.strictEqual(verdictOf(made), expected)
      if (Either.isRight(made)) {
        held.push({ hold: made.right, scope: yield* Scope.make() })
        model.open(command.key, BigInt(command.amount), command.by, true)
      }
    } else if (command.do === "crash") {
      gone.push(
        yield* world.orphan(
          command.by,
          held.map(({ hold: { id } }) => id)
        )
      )
      model.crash(command.by)
    } else if (command.do === "step") {
      yield* world.step(gone, command.seconds)
      model.step(command.seconds)
    } else if (command.do === "sweep") {
      yield* sweep
      model.sweep()
    } else {
      const target = chosen(command.hold)
      if (target === undefined) return
      if (command.do === "settle") {
        const settlement = yield* settle(command.by, target, BigInt(command.cost))
        assert.deepEqual(settlement, model.settle(target.expected, BigInt(command.cost)))
      } else if (command.do === "release") {
        yield* release(target)
        model.release(target.expected)
      } else if (command.do === "refund") {
        if (target.expected.isJob) return
        const { id, key, org } = target.actual.hold
        const done = yield* Effect.makeLatch()
        yield* at(command.by).refunds.refund({ id, key, org })
        yield* at(command.by).refunds.runAfter(id, Effect.asVoid(done.open))
        yield* Effect.timeout(done.await, "10 seconds")
        model.refund(target.expected)
      } else {
        const wasOpen = target.expected.state === "open"
        yield* Effect.all(
          [...command.costs.map((cost, by) => settle(by, target, BigInt(cost))), release(target), sweep],
          { concurrency: "unbounded" }
        )
        model.sweep()
        const [now] = yield* world.stored([target.actual.hold.id])
        if (wasOpen && now !== undefined) {
          assert.include(
            ["released", ...command.costs.map((cost) => `settled ${model.cut(target.expected, cost)}`)],
            now.state === "settled" ? `settled ${now.charged}` : now.state
          )
          model.adopt(target.expected, now.state, now.charged ?? 0n)
        }
      }
    }
  })

  for (const command of commands) {
    yield* run(command)
    assert.deepEqual(yield* world.accounts, model.accounts)
  }
  assert.deepEqual(
    (yield* world.capSpent).map(({ capSpent }) => capSpent),
    model.capSpent
  )
  assert.deepEqual(
    (yield* world.spent).map(({ spent }) => spent),
    model.spent
  )
  assert.deepEqual(
    (yield* world.stored(held.map(({ hold: { id } }) => id))).map(({ charged, state }) => ({
      state,
      charged: charged ?? 0n
    })),
    model.holds.map(({ charged, state }) => ({ state, charged }))
  )
  for (const [index, org] of world.owners.entries()) {
    assert.sameMembers([...(yield* bench.charges(org))], model.chargesOf(index))
  }
  // The books allow open holds of jobs only beside their videos.
  for (const [index, { isJob }] of model.holds.entries()) {
    const target = chosen(index)
    if (isJob && target !== undefined) yield* release(target)
  }
})
