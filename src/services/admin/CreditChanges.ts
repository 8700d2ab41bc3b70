import { Data, Effect, Schema } from "effect"
import { type NanoUsd, toUsdText } from "../../domain/Money.ts"
import { Entry } from "../ledger/Entry.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Payments } from "../payments/Payments.ts"
import { RequestLog } from "../telemetry/RequestLog.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./AuditLog.ts"
import { Organizations } from "./Organizations.ts"

/** `replayed` is true if a payment with the same reference already existed, so nothing was added. */
export const TopUpRecord = Schema.Struct({ ...Entry.fields, replayed: Schema.Boolean }).annotations({
  identifier: "TopUp"
})
/** `request` is the id of the log row. */
export const RefundRecord = Schema.Struct({ ...Entry.fields, request: Schema.String }).annotations({
  identifier: "Refund"
})

const common = { targetOf: ({ id }: Entry) => id, orgOf: ({ org }: Entry) => org }

export const topUp = (input: {
  readonly org: string
  readonly amount: NanoUsd
  readonly ref?: string | undefined
  readonly note?: string | undefined
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const { findLocked } = yield* Organizations
    const { scope } = yield* CurrentActor
    const { enter } = yield* Payments
    return yield* create({
      ...common,
      action: "credits.top_up",
      input,
      record: TopUpRecord,
      run: Effect.flatMap(findLocked(scope, input.org), ({ id }) => enter({ ...input, org: id })),
      recordOf: ({ entry, replayed }: { readonly entry: Entry; readonly replayed: boolean }) => ({
        ...entry,
        replayed
      })
    })
  })

export const adjust = (input: {
  readonly org: string
  readonly amount: NanoUsd
  readonly note: string
  readonly force: boolean
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const { findLocked } = yield* Organizations
    const { scope } = yield* CurrentActor
    const { adjust } = yield* LedgerAdmin
    return yield* create({
      ...common,
      action: "credits.adjust",
      input,
      record: Entry,
      run: Effect.flatMap(findLocked(scope, input.org), ({ id }) => adjust({ ...input, org: id })),
      recordOf: (entry: Entry) => entry
    })
  })

export class RequestNotLogged extends Data.TaggedError("RequestNotLogged")<{ readonly id: string }> {
  override get message() {
    return `There is no request ${this.id} in the log.`
  }
}

export class RefundRefused extends Data.TaggedError("RefundRefused")<{ readonly message: string }> {}

const maxRows = 100

const findChargedRequest = Effect.fnUntraced(function* (id: string) {
  const ledger = yield* LedgerAdmin
  const { findById } = yield* RequestLog
  const { scope } = yield* CurrentActor
  const rows = yield* findById(scope, id, maxRows)
  if (rows.length === 0) return yield* new RequestNotLogged({ id })
  const requests = yield* Effect.forEach(rows, ({ holdId, id: row, orgId: org }) =>
    Effect.map(holdId === null ? Effect.succeed(undefined) : ledger.hold(scope, holdId), (money) => ({
      row,
      org,
      money
    }))
  )
  const charged = requests.flatMap(({ money, org, row }) =>
    money === undefined || (money.hold.charged ?? 0n) === 0n ? [] : [{ row, org, hold: money.hold.id }]
  )
  const [first, ...others] = charged
  if (first === undefined) return yield* new RefundRefused({ message: `The request ${id} has no charge.` })
  if (others.length === 0) return first
  const rowIds = charged.map(({ row }) => row).join(", ")
  return yield* new RefundRefused({
    message: `${charged.length} requests have the id ${id}. Use one of these row ids: ${rowIds}.`
  })
})

const requireNotDeleted = Effect.fnUntraced(function* (org: string) {
  const { findLocked } = yield* Organizations
  const { scope } = yield* CurrentActor
  const message = `The organization ${org} of the request is deleted and cannot get a refund.`
  yield* Effect.mapError(findLocked(scope, org), () => new RefundRefused({ message }))
})

const explainRemainder = (id: string, charged: bigint, remaining: bigint) => {
  const charge = `${toUsdText(charged)} USD that the request ${id} was charged`
  return remaining > 0n
    ? `Only ${toUsdText(remaining)} of the ${charge} can still be refunded.`
    : `All ${charge} are already refunded.`
}

/** `request` is a client's request id or the id of a log row. */
export const refund = (input: {
  readonly request: string
  readonly amount: NanoUsd | undefined
  readonly note: string
}) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const ledger = yield* LedgerAdmin
    const { amount, note, request } = input
    const run = Effect.gen(function* () {
      const { org, ...charged } = yield* findChargedRequest(request)
      yield* requireNotDeleted(org)
      const entry = yield* Effect.catchTag(
        ledger.refund({ ...charged, amount, note }),
        "NothingToRefund",
        ({ charged, remaining }) => new RefundRefused({ message: explainRemainder(request, charged, remaining) })
      )
      return { ...entry, request: charged.row }
    })
    return yield* create({
      ...common,
      action: "credits.refund",
      input,
      record: RefundRecord,
      run,
      recordOf: (record: typeof RefundRecord.Type) => record
    })
  })
