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
import { equals, inTimeRange, lockName, recordsOf, rowsOf, toStorable, whenDefined } from "../sql/SqlStatement.ts"
import { makeEnter, makeEnterReversal } from "./PaymentEntries.ts"
import {
  type CheckoutOrder,
  PaymentProvider,
  PaymentProviderFailed,
  PaymentTerms,
  sessionOfPayment
} from "./PaymentProvider.ts"
import {
  Payment,
  PaymentEvent,
  type PublicPayment,
  paymentColumns,
  secondsToAwaitPage,
  secondsToRequestPage,
  secondsToStorePage
} from "./PaymentRecord.ts"
import { makeReceiptFinder, reversalsOf } from "./Receipts.ts"

/** `problem` completes "`amount_usd` …". */
class AmountRefused extends Data.TaggedError("AmountRefused")<{ readonly problem: string }> {}

class PaymentNotFound extends Data.TaggedError("PaymentNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no payment ${this.id}.`
  }
}

/** The payment has expired or failed, so it can no longer be paid. */
class PaymentClosed extends Data.TaggedError("PaymentClosed")<{ readonly id: string }> {
  override get message() {
    return `The payment ${this.id} is closed. Start another one.`
  }
}

/** The customer has completed the payment page. The payment may still be open, because a bank debit takes days. */
class PaymentCompleted extends Data.TaggedError("PaymentCompleted")<{ readonly id: string }> {
  override get message() {
    return `The payment ${this.id} is completed. Do not pay it again.`
  }
}

class PayerDeleted extends Data.TaggedError("PayerDeleted")<{ readonly id: string }> {
  override get message() {
    return `The organization of the payment ${this.id} is deleted, so a payment would not be credited.`
  }
}

/** The maximum number of open payments per organization. A payment stays open for up to a day. */
const maxOpen = 10

class TooManyOpenPayments extends Data.TaggedError("TooManyOpenPayments")<{}> {
  override get message() {
    return `An organization may have ${maxOpen} open payments that were started within a day. Complete one of them, or wait.`
  }
}

/** Limits concurrent checkouts, because all organizations share the provider's rate limit. */
const maxConcurrent = 8

interface PaymentOrder {
  readonly org: OrgId
  readonly amount: NanoUsd
}

type PageOrder = Omit<CheckoutOrder, "successUrl" | "cancelUrl">

/** `age` is in seconds. */
const PageState = Schema.Struct({
  session: Schema.NullOr(Schema.String),
  age: Schema.Number,
  isDeleted: Schema.Boolean
})
type PageState = typeof PageState.Type

/** Returns the error for a payment that is no longer open. */
const refusalOf = ({ id, status }: Pick<Payment, "id" | "status">) =>
  status === "paid" || status === "refused" ? new PaymentCompleted({ id }) : new PaymentClosed({ id })

interface PaymentQuery {
  readonly org?: OrgId | undefined
  readonly status?: Payment["status"] | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** Customers' payments and their payment pages. */
export class Payments extends Context.Tag("gateway/Payments")<
  Payments,
  {
    /** Stores an open payment without a page. `checkout` creates the page. */
    readonly begin: (order: PaymentOrder) => Effect.Effect<Payment, AmountRefused | TooManyOpenPayments>
    /** Returns the URL of the payment page. Creates the page if there is none. Runs one call per organization at a time. */
    readonly checkout: (
      scope: OrganizationScope,
      id: string
    ) => Effect.Effect<
      { readonly id: string; readonly url: string },
      PaymentProviderFailed | PaymentNotFound | PaymentClosed | PaymentCompleted | PayerDeleted | GatewayBusy
    >
    /** Enters a top-up. With the reference of a refused payment, the top-up credits that payment. */
    readonly enter: (payment: TopUp) => ReturnType<LedgerAdmin["Type"]["topUp"]>
    /** Sets the USD amount of a refund or dispute in another currency. */
    readonly enterReversal: ReturnType<typeof makeEnterReversal>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: PaymentQuery) => Effect.Effect<ReadonlyArray<Payment>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<PublicPayment, PaymentNotFound>
  }
>() {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const provider = yield* PaymentProvider
      const findReceipt = yield* makeReceiptFinder
      const { maximum, minimum, publicUrl, suspendsDisputed } = yield* PaymentTerms
      const records = recordsOf(Payment)
      const columns = sql.literal(paymentColumns)
      const isYoungerThan = (seconds: number) => sql`created_at > now() - ${seconds} * interval '1 second'`
      const { topUp } = yield* LedgerAdmin
      const withOrganization = makeBoundedKeyedSemaphore(1, maxOpen)
      const checkouts = yield* Effect.makeSemaphore(maxConcurrent)

      const begin = Effect.fn("Payments.begin")(function* ({ amount, org }: PaymentOrder) {
        if (amount < minimum || amount > maximum || toCents(amount) === undefined) {
          const problem = `must be from ${toUsdText(minimum)} to ${toUsdText(maximum)} USD, in whole cents`
          return yield* new AmountRefused({ problem })
        }
        yield* lockName(sql, `payments ${org}`)
        const [payment] = yield* records(sql`
          WITH payment AS (
            INSERT INTO payments (id, org_id, amount, status) SELECT ${ids.prefixed("pay")}, ${org}, ${amount}::bigint, 'open'
            WHERE (
              SELECT count(*) FROM payments
              WHERE org_id = ${org} AND status = 'open' AND created_at > now() - interval '1 day'
                AND (session IS NOT NULL OR ${isYoungerThan(secondsToAwaitPage)})
            ) < ${maxOpen}
            RETURNING *
          )
          SELECT ${columns} FROM payment`)
        return payment ?? (yield* new TooManyOpenPayments())
      })

      const findOne = Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
        const [payment] = yield* records(sql`
          SELECT ${columns} FROM payments AS payment
          WHERE ${sql.and([sql`id = ${toStorable(id)}`, ...equals(sql, { org_id: scope.org })])}`)
        return payment ?? (yield* new PaymentNotFound({ id }))
      })

      const find = Effect.fn("Payments.find")(function* (scope: OrganizationScope, id: string) {
        const payment = yield* findOne(scope, id)
        const receipt = yield* findReceipt(sql`payment.id = ${payment.id}`)
        const reversals = receipt?.reversals ?? (yield* reversalsOf(sql, payment.id))
        const events = yield* recordsOf(PaymentEvent)(sql`
          SELECT id, type, created_at, received_at FROM payment_events WHERE payment_id = ${payment.id}
          ORDER BY created_at, received_at, id`)
        return { ...payment, receipt: receipt ?? null, reversals, events }
      })

      // Reads everything in one statement, because another process could create the page between two statements.
      const findOpen = Effect.fnUntraced(function* (id: string) {
        const [open] = yield* rowsOf(PageState)(sql`
          SELECT session, extract(epoch FROM now() - payments.created_at)::float8 AS age, deleted_at IS NOT NULL AS is_deleted
          FROM payments JOIN organizations ON organizations.id = org_id
          WHERE payments.id = ${id} AND payments.status = 'open'`)
        return open ?? (yield* refusalOf(yield* findOne(OrganizationScope.all, id)))
      })

      /** The payment is closed once no gateway can store a page for it. Until then, it counts as open in `begin`. */
      const pageMissing = (id: string, age: number) =>
        age >= secondsToAwaitPage
          ? new PaymentClosed({ id })
          : new PaymentProviderFailed({
              message: `The page of the payment ${id} was created too late, or another gateway is creating it.`
            })

      const createPage = Effect.fnUntraced(function* (order: PageOrder, { age, isDeleted }: PageState) {
        const { payment: id } = order
        if (isDeleted) return yield* new PayerDeleted({ id })
        if (age >= secondsToRequestPage) return yield* pageMissing(id, age)
        const returnUrl = `${publicUrl}/console#/payments/${id}?result=`
        const session = yield* provider.createSession({
          ...order,
          successUrl: `${returnUrl}paid`,
          cancelUrl: `${returnUrl}cancelled`
        })
        const stored = yield* Effect.orDie(sql`
          UPDATE payments SET session = ${session.id}
          WHERE id = ${id} AND status = 'open' AND (session IS NULL OR session = ${session.id})
            AND ${isYoungerThan(secondsToStorePage)}
          RETURNING id`)
        if (stored.length > 0) return session
        const current = yield* findOpen(id)
        // Another session was stored, although an account returns one session per idempotency key: that gateway uses another
        // account.
        return yield* current.session === null
          ? pageMissing(id, current.age)
          : sessionOfPayment(provider, id, current.session)
      })

      const openPage = Effect.fnUntraced(function* (order: PageOrder) {
        const { payment: id } = order
        const open = yield* findOpen(id)
        const page = yield* open.session === null
          ? createPage(order, open)
          : sessionOfPayment(provider, id, open.session)
        if (page.url === undefined && !page.isExpired && !page.hasFailed) return yield* new PaymentCompleted({ id })
        if (open.isDeleted) return yield* new PayerDeleted({ id })
        return page.url === undefined ? yield* new PaymentClosed({ id }) : { id, url: page.url }
      })

      const checkout = Effect.fn("Payments.checkout")(function* (scope: OrganizationScope, id: string) {
        const { amount_usd: amount, org, ...payment } = yield* findOne(scope, id)
        const cents = amount === null ? undefined : toCents(amount)
        if (org === null || cents === undefined) return yield* refusalOf(payment)
        // `openPage` reads the payment only after the wait, because it may get a page or be paid meanwhile.
        return yield* withOrganization(org)(checkouts.withPermits(1)(openPage({ payment: id, org, cents })))
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
