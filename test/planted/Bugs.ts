/** Bugs about money. None quotes a source line: each replaces typed exports, or what the database does with a row. */

import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { vi } from "vitest"
import { NanoUsd } from "../../src/domain/Money.ts"
import type { OrgId } from "../../src/domain/Organization.ts"
import { TokenWindows } from "../../src/services/access/RateLimiter.ts"
import type { HoldRefused, HoldRequest, Ledger as LedgerTag } from "../../src/services/ledger/Ledger.ts"

interface BugOf<Kind extends string> {
  readonly kind: Kind
  readonly name: string
  /** The cheapest test file that fails with the bug. */
  readonly caughtBy: string
}

/** Runs in the migrated database that the tests copy. */
interface DatabaseBug extends BugOf<"database"> {
  readonly sql: string
}

/**
 * Runs before a test file is imported. At its top this file must import values only from modules that import no replaced
 * module: whatever is loaded before keeps the real one.
 */
interface ModuleBug extends BugOf<"module"> {
  readonly plant: () => void
}

export type Bug = DatabaseBug | ModuleBug

interface Change {
  readonly table: string
  readonly on: "INSERT" | "UPDATE"
  readonly when: string
  /** Columns, and the expressions of OLD and NEW that they become. */
  readonly set: Readonly<Record<string, string>>
}

/** Changes rows before they are written. The SELECT fails at once if a column is missing; the trigger would fail later. */
const change = ({ on, set, table, when }: Change): string => `
  SELECT ${Object.entries(set)
    .map(([column, value]) => `NEW.${column}, ${value}`)
    .join(", ")}
  FROM ${table} AS OLD, ${table} AS NEW WHERE ${when} LIMIT 0;
  CREATE FUNCTION planted_in_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    ${Object.entries(set)
      .map(([column, value]) => `NEW.${column} := ${value};`)
      .join(" ")}
    RETURN NEW;
  END $$;
  CREATE TRIGGER planted BEFORE ${on} ON ${table} FOR EACH ROW WHEN (${when})
    EXECUTE FUNCTION planted_in_${table}();`

const replace = <M extends object>(real: M, exports: Partial<M>): M => ({ ...real, ...exports })

/** The service with another layer. */
const withLayer = <T extends { readonly layer: unknown }>(service: T, layer: T["layer"]): T =>
  Object.assign(service, { layer })

const pricing = "test/domain/Pricing.long.test.ts"
const chat = "test/services/chat/ChatCompletions.test.ts"
const ledger = "test/services/ledger/Ledger.test.ts"
const openHolds = "test/services/ledger/OpenHolds.test.ts"

const isCharge = "NEW.balance < OLD.balance AND NEW.held < OLD.held"

const holdBugs: ReadonlyArray<Bug> = [
  {
    name: "held money can be held again",
    kind: "database",
    sql: change({ table: "organizations", on: "UPDATE", when: "NEW.held <> OLD.held", set: { held: "OLD.held" } }),
    caughtBy: ledger
  },
  {
    name: "holds that arrive together are admitted as if each were alone",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/ledger/Ledger.ts"), async (importReal) => {
        const real = await importReal()
        const { Ledger } = real
        const makeLedger = Effect.gen(function* () {
          const ledger = yield* Ledger
          const sql = yield* SqlClient.SqlClient
          const addToBalance = ({ org }: HoldRequest, amount: bigint) =>
            Effect.orDie(sql`UPDATE organizations SET balance = balance + ${amount}::bigint WHERE id = ${org}`)
          const withHold: typeof ledger.withHold = (request, use) =>
            Effect.flatMap(ledger.balance(request.org), ({ balance, held }) => {
              if (request.upTo > balance - held) return ledger.withHold(request, use)
              const takeBack = addToBalance(request, 0n - request.upTo)
              const lent = ledger.withHold(request, (hold) => Effect.zipRight(takeBack, use(hold)))
              return Effect.zipRight(addToBalance(request, request.upTo), lent)
            })
          return Ledger.of({ ...ledger, withHold })
        })
        return replace(real, {
          Ledger: withLayer(
            Ledger,
            Layer.provide(Layer.effect(Ledger, makeLedger), Layer.provide(Ledger.layer, TokenWindows.layer))
          )
        })
      }),
    caughtBy: ledger
  },
  {
    name: "old holds of running processes are swept",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/ledger/HoldSweeper.ts"), async (importReal) => {
        const real = await importReal()
        const releaseOld = Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`
            WITH released AS (
              UPDATE open_holds SET released_at = now()
              WHERE released_at IS NULL AND created_at < now() - interval '1 hour' RETURNING org_id, amount
            )
            UPDATE organizations SET held = held - sums.amount
            FROM (SELECT org_id, sum(amount)::bigint AS amount FROM released GROUP BY org_id) AS sums
            WHERE organizations.id = sums.org_id`
        )
        return replace(real, { sweep: Effect.zipRight(Effect.orDie(releaseOld), real.sweep) })
      }),
    caughtBy: ledger
  },
  {
    name: "a hold covers the prompt alone",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/domain/Pricing.ts"), async (importReal) => {
        const real = await importReal()
        return replace(real, {
          quoteChat: (model, request) => {
            const { price } = real.quoteChat(model, request)
            return { price, upTo: real.holdAmount(price, 0) }
          }
        })
      }),
    caughtBy: pricing
  }
]

const settleBugs: ReadonlyArray<Bug> = [
  {
    name: "a charge is taken from the balance twice",
    kind: "database",
    sql: change({
      table: "organizations",
      on: "UPDATE",
      when: isCharge,
      set: { balance: "NEW.balance - (OLD.balance - NEW.balance)" }
    }),
    caughtBy: openHolds
  },
  {
    name: "a charge does not reach the balance",
    kind: "database",
    sql: change({ table: "organizations", on: "UPDATE", when: isCharge, set: { balance: "OLD.balance" } }),
    caughtBy: openHolds
  },
  {
    name: "a charged hold stays open",
    kind: "database",
    // A trigger of the schema refuses holds that were closed before.
    sql: `
      ALTER TABLE open_holds DISABLE TRIGGER USER;
      CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO open_holds VALUES (OLD.*);
        RETURN NULL;
      END $$;
      CREATE TRIGGER planted AFTER DELETE ON open_holds FOR EACH ROW WHEN (OLD.released_at IS NULL)
        EXECUTE FUNCTION planted();`,
    caughtBy: openHolds
  },
  {
    name: "a released hold is charged",
    kind: "database",
    sql:
      change({
        table: "open_holds",
        on: "UPDATE",
        when: "NEW.released_at IS NOT NULL",
        set: { released_at: "NULL::timestamptz" }
      }) +
      // The charge frees the hold a second time, which the table's constraint would refuse.
      change({ table: "organizations", on: "UPDATE", when: "NEW.held < 0", set: { held: "0" } }),
    caughtBy: openHolds
  },
  {
    name: "a charge does not count towards its key's spending cap",
    kind: "database",
    sql: change({ table: "key_spend", on: "INSERT", when: "NEW.spent > 0", set: { spent: "0" } }),
    caughtBy: ledger
  },
  {
    name: "an answer is given before its charge is certain",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/chat/ChatCompletions.ts"), async (importReal) => {
        const real = await importReal()
        const { Ledger } = await import("../../src/services/ledger/Ledger.ts")
        const settleLater =
          (ledger: LedgerTag["Type"]): LedgerTag["Type"]["settle"] =>
          (hold, cost, options) =>
            ledger
              .settle(hold, cost, options)
              .pipe(
                Effect.delay("1 second"),
                Effect.forkDaemon,
                Effect.as({ charged: cost, isExceeded: false, wasReleased: false })
              )
        /** The hold stays open behind the answer. */
        const answerFirst =
          (ledger: LedgerTag["Type"]): LedgerTag["Type"]["withHold"] =>
          (request, use) =>
            Effect.gen(function* () {
              const answered = yield* Deferred.make<
                Effect.Effect.Success<ReturnType<typeof use>>,
                Effect.Effect.Error<ReturnType<typeof use>> | HoldRefused
              >()
              const working = ledger.withHold(request, (hold) =>
                Effect.tap(use(hold), (answer) =>
                  Effect.zipRight(Deferred.succeed(answered, answer), Effect.interruptible(Effect.sleep("2 seconds")))
                )
              )
              const running = yield* Effect.forkDaemon(
                Effect.catchAllCause(working, (cause) => Deferred.failCause(answered, cause))
              )
              const answer = Effect.interruptible(Deferred.await(answered))
              return yield* Effect.onInterrupt(answer, () => Fiber.interrupt(running))
            })
        const makeLedger = Effect.map(Ledger, (ledger) =>
          Ledger.of({ ...ledger, settle: settleLater(ledger), withHold: answerFirst(ledger) })
        )
        const layer = Layer.provide(real.ChatCompletions.layer, Layer.effect(Ledger, makeLedger))
        return replace(real, { ChatCompletions: withLayer(real.ChatCompletions, layer) })
      }),
    caughtBy: chat
  },
  {
    name: "cached tokens are paid for twice",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/domain/Pricing.ts"), async (importReal) => {
        const real = await importReal()
        return replace(real, {
          chatCharge: (pricing, usage) =>
            NanoUsd(
              real.chatCharge(pricing, usage) + real.chatCharge(pricing, { ...real.noUsage, prompt: usage.cached })
            )
        })
      }),
    caughtBy: pricing
  }
]

const releaseBugs: ReadonlyArray<Bug> = [
  {
    name: "a release keeps what was held",
    kind: "database",
    sql: change({
      table: "organizations",
      on: "UPDATE",
      when: "NEW.held < OLD.held AND NEW.balance = OLD.balance",
      set: { held: "OLD.held" }
    }),
    caughtBy: openHolds
  },
  {
    name: "a stream that breaks is charged",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/chat/ChatCompletions.ts"), async (importReal) => {
        const real = await importReal()
        const { ChatCompletions } = real
        const { Ledger } = await import("../../src/services/ledger/Ledger.ts")
        const makeChats = Effect.gen(function* () {
          const chats = yield* ChatCompletions
          const ledger = yield* Ledger
          return ChatCompletions.of({
            ...chats,
            stream: (task, sink) => {
              const { key, org } = task.record.summary.caller
              const charge = Effect.gen(function* () {
                const { upTo } = yield* chats.quote(task)
                yield* ledger.withHold({ org, key, upTo }, (hold) => ledger.settle(hold, upTo))
              }).pipe(Effect.ignore)
              return chats.stream(task, { ...sink, fail: (failure) => Effect.zipRight(charge, sink.fail(failure)) })
            }
          })
        })
        const layer = Layer.provide(Layer.effect(ChatCompletions, makeChats), ChatCompletions.layer)
        return replace(real, { ChatCompletions: withLayer(ChatCompletions, layer) })
      }),
    caughtBy: chat
  },
  {
    name: "a charge is refunded more than once",
    kind: "database",
    sql:
      change({
        table: "ledger_entries",
        on: "INSERT",
        when: "NEW.kind = 'adjustment' AND NEW.ref LIKE 'refund:%'",
        set: { ref: "NULL::text" }
      }) +
      // The second refund lowers the key's spending below zero, which the table's constraint would refuse.
      change({ table: "key_spend", on: "UPDATE", when: "NEW.spent < 0", set: { spent: "0" } }),
    caughtBy: ledger
  },
  {
    name: "a request that was not charged is refunded",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/ledger/LedgerAdmin.ts"), async (importReal) => {
        const real = await importReal()
        const { LedgerAdmin } = real
        const makeAdmin = Effect.gen(function* () {
          const admin = yield* LedgerAdmin
          const sql = yield* SqlClient.SqlClient
          const heldAmounts = (hold: string) => sql<{ readonly org: OrgId; readonly amount: string }>`
            SELECT org_id AS org, amount FROM all_holds WHERE id = ${hold} AND charged IS NULL`
          const refund: typeof admin.refund = ({ hold, note, ...more }) =>
            Effect.catchTag(admin.refund({ hold, note, ...more }), "NothingToRefund", (refused) =>
              Effect.flatMap(Effect.orDie(heldAmounts(hold)), ([held]) =>
                held === undefined
                  ? refused
                  : Effect.orDie(
                      admin.adjust({ org: held.org, amount: NanoUsd(BigInt(held.amount)), note, force: false })
                    )
              )
            )
          return LedgerAdmin.of({ ...admin, refund })
        })
        return replace(real, {
          LedgerAdmin: withLayer(LedgerAdmin, Layer.provide(Layer.effect(LedgerAdmin, makeAdmin), LedgerAdmin.layer))
        })
      }),
    caughtBy: ledger
  }
]

const countBugs: ReadonlyArray<Bug> = [
  {
    name: "an answer that was refused before any output is charged",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/chat/ChatUsage.ts"), async (importReal) => {
        const real = await importReal()
        return replace(real, {
          measureUsage: (...given) =>
            Effect.map(real.measureUsage(...given), (measured) => ({ ...measured, isWaived: false }))
        })
      }),
    caughtBy: "test/services/chat/StreamDepartures.test.ts"
  },
  {
    name: "reasoning that a host counts in its total alone is not charged",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/providers/chat/ProviderUsage.ts"), async (importReal) => {
        const real = await importReal()
        return replace(real, { readUsage: (counts) => real.readUsage(counts) })
      }),
    caughtBy: "test/http/chat/Charges.test.ts"
  },
  {
    name: "a charge that is waived without its cause is not found",
    kind: "module",
    plant: () =>
      vi.doMock(import("../../src/services/ledger/Invariants.ts"), async (importReal) => {
        const real = await importReal()
        return replace(real, {
          invariants: (sql) =>
            real
              .invariants(sql)
              .map((one) => (one.name.startsWith("a chat's charge") ? { ...one, check: sql`SELECT WHERE false` } : one))
        })
      }),
    caughtBy: "test/http/chat/Refusals.test.ts"
  }
]

const paymentBugs: ReadonlyArray<Bug> = [
  {
    name: "refunds of a credited payment are not charged",
    kind: "database",
    sql: change({
      table: "payments",
      on: "UPDATE",
      when: "OLD.status = 'refused' AND NEW.status = 'paid'",
      set: { status: "OLD.status", problem: "OLD.problem", entry_id: "OLD.entry_id", org_id: "OLD.org_id" }
    }),
    caughtBy: "test/services/payments/EnteredPayments.test.ts"
  }
]

/** The nineteen that would cost the most. */
export const bugs: ReadonlyArray<Bug> = [...holdBugs, ...settleBugs, ...releaseBugs, ...countBugs, ...paymentBugs]
