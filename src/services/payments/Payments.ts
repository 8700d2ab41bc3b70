import { SqlClient } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import type { GatewayBusy } from "../../domain/Failure.ts"
import { type NanoUsd, toUsdText } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { toCents } from "../../domain/Payment.ts"
import { LedgerAdmin, type TopUp } from "../ledger/LedgerAdmin.ts"
import { Ids } from "../runtime/Ids.ts"
import { makeBoundedKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { listing } from "../sql/Listing.ts"
import { equals, inTimeRange, lockName, recordsOf, rowsOf, toStorable, whenDefined } from "../sql/Statement.ts"
import { makeEnter, makeEnterReversal } from "./EnteredPayments.ts"
import {
  Payment,
  PaymentEvent,
  PaymentReversal,
  paymentColumns,
  type ShownPayment,
  secondsToAskForPage,
  secondsToAwaitPage,
  secondsToKeepPage
} from "./Payment.ts"
import {
  type CheckoutOrder,
  PaymentProvider,
  PaymentProviderFailed,
  PaymentTerms,
  sessionOfPayment
} from "./PaymentProvider.ts"

/** Completes "`amount_usd` …". */
export class AmountRefused extends Data.TaggedError("AmountRefused")<{ readonly problem: string }> {}

export class PaymentNotFound extends Data.TaggedError("PaymentNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no payment ${this.id}.`
  }
}

/** Its page was left, or its money did not come. */
export class PaymentOver extends Data.TaggedError("PaymentOver")<{ readonly id: string }> {
  override get message() {
    return `The payment ${this.id} has no page any more: begin another.`
  }
}

/** Its page was used, whether or not an event has told of it; a bank's debit takes days. */
export class PaymentMade extends Data.TaggedError("PaymentMade")<{ readonly id: string }> {
  override get message() {
    return `The payment ${this.id} was made already. Do not pay it again.`
  }
}

/** There is no balance that the money could be added to. */
export class PayerDeleted extends Data.TaggedError("PayerDeleted")<{ readonly id: string }> {
  override get message() {
    return `The organization of the payment ${this.id} was deleted: what is paid for it is not credited.`
  }
}

/** Each is a page at the provider, where it can be paid for a day. */
const maxOpen = 10

export class TooManyOpen extends Data.TaggedError("TooManyOpen")<{}> {
  override get message() {
    return `An organization may have ${maxOpen} payments open that were begun within a day: finish one of them, or wait.`
  }
}

/** Of all organizations: whoever asks over and over must not use up what the provider allows us. */
const maxAtOnce = 8

interface PaymentOrder {
  readonly org: OrgId
  readonly amount: NanoUsd
}

type PageOrder = Omit<CheckoutOrder, "returnUrl">

/** What decides whether a payment that is open has a page; `age` in seconds. */
const PageState = Schema.Struct({
  session: Schema.NullOr(Schema.String),
  age: Schema.Number,
  isDeleted: Schema.Boolean
})
type PageState = typeof PageState.Type

/** Of a payment that is not open. */
const refusalOf = ({ id, status }: Pick<Payment, "id" | "status">) =>
  status === "paid" || status === "refused" ? new PaymentMade({ id }) : new PaymentOver({ id })

interface PaymentQuery {
  readonly org?: OrgId | undefined
  readonly status?: Payment["status"] | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** What customers paid, or were sent to pay. */
export class Payments extends Context.Tag("gateway/Payments")<
  Payments,
  {
    /** Writes a payment down before anybody is sent to make it. */
    readonly begin: (order: PaymentOrder) => Effect.Effect<Payment, AmountRefused | TooManyOpen>
    /** Returns the URL of the payment page, and creates the page if there is none. Requests of one organization queue. */
    readonly checkout: (
      scope: OrganizationScope,
      id: string
    ) => Effect.Effect<
      { readonly id: string; readonly url: string },
      PaymentProviderFailed | PaymentNotFound | PaymentOver | PaymentMade | PayerDeleted | GatewayBusy
    >
    /** Enters a top-up. With the reference of a refused payment, it becomes that payment's entry. */
    readonly enter: (payment: TopUp) => ReturnType<LedgerAdmin["Type"]["topUp"]>
    /** Sets the USD amount of a refund or dispute in another currency. */
    readonly enterReversal: ReturnType<typeof makeEnterReversal>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: PaymentQuery) => Effect.Effect<ReadonlyArray<Payment>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<ShownPayment, PaymentNotFound>
  }
>() {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const provider = yield* PaymentProvider
      const { maximum, minimum, publicUrl, suspendsDisputed } = yield* PaymentTerms
      const records = recordsOf(Payment)
      const columns = sql.literal(paymentColumns)
      const youngerThan = (seconds: number) => sql`created_at > now() - ${seconds} * interval '1 second'`
      const { topUp } = yield* LedgerAdmin
      const inTurn = makeBoundedKeyedSemaphore(1, maxOpen)
      const atOnce = yield* Effect.makeSemaphore(maxAtOnce)

      const begin = Effect.fn("Payments.begin")(function* ({ amount, org }: PaymentOrder) {
        if (amount < minimum || amount > maximum || toCents(amount) === undefined) {
          const problem = `must be from ${toUsdText(minimum)} to ${toUsdText(maximum)} USD, in whole cents`
          return yield* new AmountRefused({ problem })
        }
        yield* lockName(sql, `payments ${org}`)
        const [begun] = yield* records(sql`
          WITH payment AS (
            INSERT INTO payments (id, org_id, amount, status) SELECT ${ids.prefixed("pay")}, ${org}, ${amount}::bigint, 'open'
            WHERE (
              SELECT count(*) FROM payments
              WHERE org_id = ${org} AND status = 'open' AND created_at > now() - interval '1 day'
                AND (session IS NOT NULL OR ${youngerThan(secondsToAwaitPage)})
            ) < ${maxOpen}
            RETURNING *
          )
          SELECT ${columns} FROM payment`)
        return begun ?? (yield* new TooManyOpen())
      })

      const findOne = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const [found] = yield* records(sql`
          SELECT ${columns} FROM payments AS payment
          WHERE ${sql.and([sql`id = ${toStorable(id)}`, ...equals(sql, { org_id: scope.org })])}`)
        return found ?? (yield* new PaymentNotFound({ id }))
      })

      const find = Effect.fn("Payments.find")(function* (scope: OrganizationScope, id: string) {
        const payment = yield* findOne(scope, id)
        const reversals = yield* recordsOf(PaymentReversal)(sql`
          SELECT id, kind, status, CASE WHEN NOT needs_amount THEN amount END AS amount_usd, foreign_amount,
            taken AS taken_usd, created_at
          FROM payment_reversals WHERE payment_id = ${payment.id} ORDER BY created_at, id`)
        const events = yield* recordsOf(PaymentEvent)(sql`
          SELECT id, type, created_at, received_at FROM payment_events WHERE payment_id = ${payment.id}
          ORDER BY created_at, received_at, id`)
        return { ...payment, reversals, events }
      })

      /** In one statement: a page may be made while this process stands still between two. */
      const findOpen = Effect.fnUntraced(function* (id: string) {
        const [open] = yield* rowsOf(PageState)(sql`
          SELECT session, extract(epoch FROM now() - payments.created_at)::float8 AS age, deleted_at IS NOT NULL AS is_deleted
          FROM payments JOIN organizations ON organizations.id = org_id
          WHERE payments.id = ${id} AND payments.status = 'open'`)
        return open ?? (yield* refusalOf(yield* findOne(OrganizationScope.all, id)))
      })

      /** It is over only when no gateway can keep a page for it any more: until then `begin` counts it. */
      const noPage = (id: string, age: number) =>
        age >= secondsToAwaitPage
          ? new PaymentOver({ id })
          : new PaymentProviderFailed({ message: `The page of ${id} came too late, or another gateway is making it.` })

      const makePage = Effect.fnUntraced(function* (order: PageOrder, { age, isDeleted }: PageState) {
        const { payment: id } = order
        if (isDeleted) return yield* new PayerDeleted({ id })
        if (age >= secondsToAskForPage) return yield* noPage(id, age)
        const made = yield* provider.createSession({ ...order, returnUrl: `${publicUrl}/console#/payments/${id}` })
        const kept = yield* Effect.orDie(sql`
          UPDATE payments SET session = ${made.id}
          WHERE id = ${id} AND status = 'open' AND (session IS NULL OR session = ${made.id})
            AND ${youngerThan(secondsToKeepPage)}
          RETURNING id`)
        if (kept.length > 0) return made
        const now = yield* findOpen(id)
        // At one account the key makes one session: another gateway has made a page at another account.
        return yield* now.session === null ? noPage(id, now.age) : sessionOfPayment(provider, id, now.session)
      })

      const pageOf = Effect.fnUntraced(function* (order: PageOrder) {
        const { payment: id } = order
        const open = yield* findOpen(id)
        const page = yield* open.session === null ? makePage(order, open) : sessionOfPayment(provider, id, open.session)
        if (page.url === undefined && !page.isExpired && !page.hasFailed) return yield* new PaymentMade({ id })
        if (open.isDeleted) return yield* new PayerDeleted({ id })
        return page.url === undefined ? yield* new PaymentOver({ id }) : { id, url: page.url }
      })

      const checkout = Effect.fn("Payments.checkout")(function* (scope: OrganizationScope, id: string) {
        const { amount_usd: amount, org, ...found } = yield* findOne(scope, id)
        const cents = amount === null ? undefined : toCents(amount)
        if (org === null || cents === undefined) return yield* refusalOf(found)
        // Another may make its page, or pay it, before it is this one's turn.
        return yield* inTurn(org)(atOnce.withPermits(1)(pageOf({ payment: id, org, cents })))
      })

      return Payments.of({
        begin,
        checkout,
        enter: makeEnter(sql, topUp, suspendsDisputed),
        enterReversal: makeEnterReversal(sql),
        find,
        page: Effect.fn("Payments.page")(
          (scope: OrganizationScope, { after, limit, org, status, ...range }: PaymentQuery) =>
            records(sql`
            SELECT ${columns} FROM payments AS payment ${listing(sql, {
              equal: { org_id: scope.narrow(org), status },
              where: [
                ...inTimeRange(sql, "created_at", range),
                ...whenDefined(after, (id) => sql`id < ${toStorable(id)}`)
              ],
              by: ["id"],
              limit
            })}`)
        )
      })
    })
  )
}
