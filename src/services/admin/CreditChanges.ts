import { Data, Effect, Schema } from "effect"
import { type NanoUsd, toUsdText } from "../../domain/Money.ts"
import { Entry } from "../ledger/Entry.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Payments } from "../payments/Payments.ts"
import { RequestLog } from "../telemetry/RequestLog.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./Audit.ts"
import { Organizations } from "./Organizations.ts"

/** `replayed`: the payment was added before, and nothing is added now. */
export const TopUpRecord = Schema.Struct({ ...Entry.fields, replayed: Schema.Boolean }).annotations({
  identifier: "TopUp"
})
/** `request`: its row of the log. */
export const RefundRecord = Schema.Struct({ ...Entry.fields, request: Schema.String }).annotations({
  identifier: "Refund"
})

const common = { targetOf: ({ id }: Entry) => id, orgOf: ({ org }: Entry) => org }

export const topUp = (given: {
  readonly org: string
  readonly amount: NanoUsd
  readonly ref?: string | undefined
  readonly note?: string | undefined
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const { keep } = yield* Organizations
    const { scope } = yield* CurrentActor
    const { enter } = yield* Payments
    return yield* create({
      ...common,
      action: "credits.top_up",
      input: given,
      record: TopUpRecord,
      run: Effect.flatMap(keep(scope, given.org), ({ id }) => enter({ ...given, org: id })),
      recordOf: ({ entry, replayed }: { readonly entry: Entry; readonly replayed: boolean }) => ({
        ...entry,
        replayed
      })
    })
  })

export const adjust = (given: {
  readonly org: string
  readonly amount: NanoUsd
  readonly note: string
  readonly force: boolean
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const { keep } = yield* Organizations
    const { scope } = yield* CurrentActor
    const { adjust } = yield* LedgerAdmin
    return yield* create({
      ...common,
      action: "credits.adjust",
      input: given,
      record: Entry,
      run: Effect.flatMap(keep(scope, given.org), ({ id }) => adjust({ ...given, org: id })),
      recordOf: (entry: Entry) => entry
    })
  })

export class RequestUnknown extends Data.TaggedError("RequestUnknown")<{ readonly id: string }> {
  override get message() {
    return `There is no request ${this.id} in the log.`
  }
}

export class RefundRefused extends Data.TaggedError("RefundRefused")<{ readonly message: string }> {}

const maxFound = 100

const chargedRequest = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* LedgerAdmin
  const { list } = yield* RequestLog
  const { scope } = yield* CurrentActor
  const rows = yield* list(scope, { id, limit: maxFound })
  if (rows.length === 0) return yield* new RequestUnknown({ id })
  const found = yield* Effect.forEach(rows, ({ holdId, id: row, orgId: org }) =>
    Effect.map(holdId === null ? Effect.succeed(undefined) : ledger.hold(scope, holdId), (money) => ({
      row,
      org,
      money
    }))
  )
  const charged = found.flatMap(({ money, org, row }) =>
    money === undefined || (money.hold.charged ?? 0n) === 0n ? [] : [{ row, org, hold: money.hold.id }]
  )
  const [one, ...others] = charged
  if (one === undefined) return yield* new RefundRefused({ message: `The request ${id} was charged nothing.` })
  if (others.length === 0) return one
  const rowIds = charged.map(({ row }) => row).join(", ")
  return yield* new RefundRefused({
    message: `${charged.length} requests have the id ${id}; name one of ${rowIds}.`
  })
})

const requireLiving = Effect.fnUntraced(function* (org: string) {
  const { keep } = yield* Organizations
  const { scope } = yield* CurrentActor
  const message = `The request is of the organization ${org}, which was deleted: no balance can take a refund.`
  yield* Effect.mapError(keep(scope, org), () => new RefundRefused({ message }))
})

const remainder = (id: string, charged: bigint, remaining: bigint) => {
  const whole = `${toUsdText(charged)} USD that the request ${id} was charged`
  return remaining > 0n
    ? `Only ${toUsdText(remaining)} of the ${whole} are left to refund.`
    : `All ${whole} were refunded before.`
}

/** `request`: what the client knows it by, or its row of the log. */
export const refund = (given: {
  readonly request: string
  readonly amount: NanoUsd | undefined
  readonly note: string
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const ledger = yield* LedgerAdmin
    const { amount, note, request } = given
    const run = Effect.gen(function* () {
      const { org, ...charged } = yield* chargedRequest(request)
      yield* requireLiving(org)
      const entry = yield* Effect.catchTag(
        ledger.refund({ ...charged, amount, note }),
        "NothingToRefund",
        ({ charged, remaining }) => new RefundRefused({ message: remainder(request, charged, remaining) })
      )
      return { ...entry, request: charged.row }
    })
    return yield* create({
      ...common,
      action: "credits.refund",
      input: given,
      record: RefundRecord,
      run,
      recordOf: (record: typeof RefundRecord.Type) => record
    })
  })
