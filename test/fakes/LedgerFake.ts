import { Context, Effect, Layer, Ref } from "effect"
import { type CapPeriod, KeyId } from "../../src/domain/ApiKey.ts"
import { InsufficientCredits, SettleFailed, SpendLimitReached } from "../../src/domain/Failure.ts"
import { balanceShares, fitsBalance, type Hold } from "../../src/domain/Hold.ts"
import { NanoUsd, zero } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { CapReduction } from "../../src/services/ledger/CapReduction.ts"
import { type HoldRequest, Ledger } from "../../src/services/ledger/Ledger.ts"
import { LedgerBench } from "../contracts/LedgerBench.ts"

interface Account {
  readonly balance: bigint
  readonly held: bigint
}

interface Stored extends Hold {
  readonly isJob: boolean
  readonly state: "open" | "settled" | "released"
}

interface State {
  readonly accounts: ReadonlyMap<string, Account>
  readonly caps: ReadonlyMap<string, { readonly amount: bigint; readonly period: CapPeriod }>
  readonly spent: ReadonlyMap<string, bigint>
  readonly holds: ReadonlyMap<string, Stored>
  readonly charges: ReadonlyArray<{ readonly hold: string; readonly amount: bigint }>
}

const empty: State = { accounts: new Map(), caps: new Map(), spent: new Map(), holds: new Map(), charges: [] }

const set = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> => new Map(map).set(key, value)

const none: Account = { balance: 0n, held: 0n }

/** A ledger in memory with the semantics of the real one. Its bench sets up accounts and reads what is stored. */
export const layer = Layer.effectContext(
  Effect.gen(function* () {
    const state = yield* Ref.make(empty)
    const ids = yield* Ref.make(0)
    const next = (prefix: string) =>
      Effect.map(
        Ref.updateAndGet(ids, (n) => n + 1),
        (n) => `${prefix}_${n}`
      )

    const reserve = (hold: Hold, isJob: boolean, canReduceHold = false) =>
      Ref.modify(state, (now): readonly [Effect.Effect<Hold, InsufficientCredits | SpendLimitReached>, State] => {
        if (now.holds.has(hold.id)) return [Effect.succeed(hold), now]
        const cap = now.caps.get(hold.key)
        const jobs = [...now.holds.values()].filter(
          (other) => other.key === hold.key && other.isJob && other.state === "open"
        )
        const spent = jobs.reduce((sum, { amount }) => sum + amount, now.spent.get(hold.key) ?? 0n)
        if (cap !== undefined && spent >= cap.amount) {
          return [Effect.fail(new SpendLimitReached({ owner: "key", period: cap.period })), now]
        }
        const account = now.accounts.get(hold.org) ?? none
        const available = account.balance - account.held
        const isGreedy = canReduceHold && account.held > 0n && hold.amount > account.balance / balanceShares
        if (available <= 0n || hold.amount > available || isGreedy) {
          return [Effect.fail(new InsufficientCredits({ needed: hold.amount, available })), now]
        }
        return [
          Effect.succeed(hold),
          {
            ...now,
            accounts: set(now.accounts, hold.org, { ...account, held: account.held + hold.amount }),
            holds: set(now.holds, hold.id, { ...hold, isJob, state: "open" })
          }
        ]
      }).pipe(Effect.flatten)

    const close = (hold: Hold, cost: NanoUsd | undefined) =>
      Ref.modify(state, (now): readonly [{ readonly charged: NanoUsd; readonly wasReleased: boolean }, State] => {
        const stored = now.holds.get(hold.id)
        const paid = now.charges.find((charge) => charge.hold === hold.id)
        if (paid !== undefined) return [{ charged: NanoUsd(paid.amount), wasReleased: false }, now]
        if (stored?.state !== "open") return [{ charged: zero, wasReleased: true }, now]
        const account = now.accounts.get(hold.org) ?? none
        const cut = cost === undefined || cost <= hold.amount ? cost : hold.amount
        const charged = cut ?? zero
        return [
          { charged, wasReleased: false },
          {
            ...now,
            accounts: set(now.accounts, hold.org, {
              balance: account.balance - charged,
              held: account.held - hold.amount
            }),
            holds: set(now.holds, hold.id, { ...stored, state: cost === undefined ? "released" : "settled" }),
            spent: set(now.spent, hold.key, (now.spent.get(hold.key) ?? 0n) + charged),
            charges: cost === undefined ? now.charges : [...now.charges, { hold: hold.id, amount: charged }]
          }
        ]
      })

    const release = (hold: Hold) => Effect.asVoid(close(hold, undefined))
    const charge = (hold: Hold, cost: NanoUsd) =>
      Effect.map(close(hold, cost), (closed) => ({ ...closed, isExceeded: !closed.wasReleased && cost > hold.amount }))
    const balance = (org: OrgId) =>
      Effect.map(Ref.get(state), (now) => {
        const { balance, held } = now.accounts.get(org) ?? none
        return { balance: NanoUsd(balance), held: NanoUsd(held) }
      })
    const place = ({ reduction: fit, canReduceHold = fit !== undefined, key, org, upTo }: HoldRequest) =>
      Effect.flatMap(next("hold"), (id) => reserve({ id, org, key, amount: upTo }, false, canReduceHold))
    const capReduction = new CapReduction({ clock: yield* Effect.clock, balance, place })
    const ledger = Ledger.of({
      withHold: (request, use) => {
        const { reduction: fit } = request
        const placed =
          fit === undefined
            ? place(request)
            : Effect.catchTag(place(request), "InsufficientCredits", (refused) =>
                capReduction.place(request, fit, refused)
              )
        return Effect.acquireUseRelease(placed, use, release)
      },
      settle: (hold, cost, { effect = Effect.void } = {}) =>
        effect.pipe(
          Effect.tapError(() => release(hold)),
          Effect.mapError(() => new SettleFailed()),
          Effect.zipRight(charge(hold, cost))
        ),
      job: { hold: (hold) => reserve(hold, true), settle: charge, release },
      canAfford: ({ canReduceHold = false, key, org, upTo }) =>
        Effect.map(Ref.get(state), (now) => {
          const { balance, held } = now.accounts.get(org) ?? none
          const cap = now.caps.get(key)
          const isCapped = cap !== undefined && (now.spent.get(key) ?? 0n) >= cap.amount
          return !isCapped && fitsBalance(upTo, { balance: NanoUsd(balance), held: NanoUsd(held) }, canReduceHold)
        }),
      balance,
      funds: (org) =>
        Effect.map(Ref.get(state), (now) => {
          const { balance, held } = now.accounts.get(org) ?? none
          const cap = { cap: null, capPeriod: null, capSpent: null, capResetsAt: null }
          return { balance: NanoUsd(balance), held: NanoUsd(held), ...cap }
        })
    })
    const bench = LedgerBench.of({
      organization: (balance) =>
        Effect.gen(function* () {
          const org = OrgId.make(yield* next("org"))
          const key = KeyId.make(yield* next("key"))
          yield* Ref.update(state, (now) => ({ ...now, accounts: set(now.accounts, org, { balance, held: 0n }) }))
          return { org, key }
        }),
      cap: (key, amount, period) =>
        Ref.update(state, (now) => ({ ...now, caps: set(now.caps, key, { amount, period }) })),
      charges: (org) =>
        Effect.map(Ref.get(state), (now) =>
          now.charges.filter(({ hold }) => now.holds.get(hold)?.org === org).map(({ amount }) => amount)
        ),
      openHolds: (org) =>
        Effect.map(
          Ref.get(state),
          (now) => [...now.holds.values()].filter((hold) => hold.org === org && hold.state === "open").length
        ),
      proved: Effect.map(Ref.get(state), (now) =>
        [...now.accounts].every(
          ([org, { held }]) =>
            held ===
            [...now.holds.values()]
              .filter((hold) => hold.org === org && hold.state === "open")
              .reduce((sum, { amount }) => sum + amount, 0n)
        )
      )
    })
    return Context.make(Ledger, ledger).pipe(Context.add(LedgerBench, bench))
  })
)
