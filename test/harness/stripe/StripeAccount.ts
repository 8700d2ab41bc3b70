/**
 * `StripeAccount` has the sessions, refunds and disputes of a Stripe account, the events that report their changes, and
 * a `PaymentProvider` over them.
 */

import { Effect, Schema } from "effect"
import { PaymentProvider } from "../../../src/services/payments/PaymentProvider.ts"
import {
  Dispute,
  Refund,
  Session,
  sessionOf,
  toDisputeReversals,
  toRefundReversals
} from "../../../src/stripe/StripePayments.ts"

type Fields = Readonly<Record<string, unknown>>

export interface StripeObject extends Fields {
  readonly id: string
  readonly created: number
}

export interface StripeEvent {
  readonly id: string
  readonly object: "event"
  readonly type: string
  readonly created: number
  readonly livemode: boolean
  readonly data: { readonly object: StripeObject }
}

interface Order {
  /** The base URL of payment pages, without an id. */
  readonly pages?: string
  readonly successUrl?: string | undefined
  readonly cancelUrl?: string | undefined
  readonly payment?: string
  readonly cents: number
  readonly currency?: string
}

interface Move {
  readonly amount: number
  readonly currency: string
}

interface Foreign {
  readonly currency?: string
  readonly moved?: Move
}

interface Disputed {
  readonly currency?: string
  readonly settled?: string
}

const decodeSession = Schema.decodeUnknownSync(Session)
const decodeRefund = Schema.decodeUnknownSync(Refund)
const decodeDispute = Schema.decodeUnknownSync(Dispute)

/** Makes the ids of each account different, even in another process with the same process id. */
let accounts = Date.now()

/** Each method changes an object and returns the event that reports the change. */
export class StripeAccount {
  readonly events: Array<StripeEvent> = []
  readonly sessions = new Map<string, StripeObject>()
  readonly refunds = new Map<string, StripeObject>()
  readonly disputes = new Map<string, StripeObject>()
  readonly #intents = new Map<unknown, { readonly id: string; readonly status: string }>()
  readonly #moves = new Map<unknown, Move>()
  readonly #settled = new Map<string, string>()
  readonly #name = `${process.pid}x${accounts++}`
  #count = 0
  /** Unix seconds. Each object is created a second after the one before. */
  #now = Math.floor(Date.now() / 1000) - 3600

  readonly #id = (prefix: string) => `${prefix}_${this.#name}x${this.#count++}`

  readonly #tell = (type: string, object: StripeObject) => {
    const event: StripeEvent = {
      id: this.#id("evt"),
      object: "event",
      type,
      created: this.#now,
      livemode: false,
      data: { object: structuredClone(object) }
    }
    this.events.push(event)
    return event
  }

  readonly #change = (objects: Map<string, StripeObject>, id: string, changes: Fields) => {
    const before = objects.get(id)
    if (before === undefined) throw new Error(`there is no ${id}`)
    const after = { ...before, ...changes }
    objects.set(id, after)
    return after
  }

  /** Moves the time forward to this Unix time in seconds. It never moves back. */
  moveTo(now: number): void {
    this.#now = Math.max(this.#now, now)
  }

  createSession({
    cents,
    currency = "usd",
    pages = "https://checkout.stripe.test",
    payment,
    cancelUrl,
    successUrl
  }: Order): StripeObject {
    const id = this.#id("cs_test")
    const session = {
      id,
      object: "checkout.session",
      created: this.#now++,
      livemode: false,
      mode: "payment",
      url: `${pages}/${id}`,
      success_url: successUrl ?? null,
      cancel_url: cancelUrl ?? null,
      status: "open",
      payment_status: "unpaid",
      amount_total: cents,
      currency,
      payment_intent: null,
      metadata: payment === undefined ? {} : { payment }
    }
    this.sessions.set(id, session)
    return session
  }

  /** Changes the amount of a session after its creation. */
  changeAmount(id: string, cents: number): void {
    this.#change(this.sessions, id, { amount_total: cents })
  }

  readonly #setIntent = (id: string, status: string) => this.#intents.set(id, { id, status })

  /** Returns the session with its payment intent expanded, as the API does on request. */
  expanded(session: StripeObject): StripeObject {
    return { ...session, payment_intent: this.#intents.get(session["payment_intent"]) ?? null }
  }

  /** Completes the payment page. With `isDelayed`, the payment succeeds or fails later. */
  complete(id: string, isDelayed = false): StripeEvent {
    const changes = { status: "complete", url: null, payment_intent: this.#id("pi") }
    this.#setIntent(changes.payment_intent, isDelayed ? "processing" : "succeeded")
    const paid = { ...changes, payment_status: isDelayed ? "unpaid" : "paid" }
    return this.#tell("checkout.session.completed", this.#change(this.sessions, id, paid))
  }

  /** Returns whether a bank debit is pending. */
  isProcessing(session: string): boolean {
    return this.#intents.get(this.sessions.get(session)?.["payment_intent"])?.status === "processing"
  }

  succeed(id: string): StripeEvent {
    const session = this.#change(this.sessions, id, { payment_status: "paid" })
    this.#setIntent(this.intentOf(id), "succeeded")
    return this.#tell("checkout.session.async_payment_succeeded", session)
  }

  fail(id: string): StripeEvent {
    this.#setIntent(this.intentOf(id), "requires_payment_method")
    return this.#tell("checkout.session.async_payment_failed", this.#change(this.sessions, id, {}))
  }

  expire(id: string): StripeEvent {
    return this.#tell("checkout.session.expired", this.#change(this.sessions, id, { status: "expired", url: null }))
  }

  /** Makes a payment without a payment page. */
  payByInvoice(): string {
    return this.#id("pi")
  }

  intentOf(session: string): string {
    return String(this.sessions.get(session)?.["payment_intent"])
  }

  /** Refunds an amount. If the payment is not in USD, `moved` is the change of the account's balance. */
  refund(intent: string, cents: number, status = "succeeded", { currency = "usd", moved }: Foreign = {}): string {
    const refund = {
      id: this.#id("re"),
      object: "refund",
      created: this.#now++,
      amount: cents,
      currency,
      status,
      payment_intent: intent,
      balance_transaction: this.#id("txn")
    }
    this.#moves.set(refund.balance_transaction, moved ?? { amount: -cents, currency })
    this.refunds.set(refund.id, refund)
    this.#tell("refund.created", refund)
    this.#tell("charge.refunded", { id: this.#id("ch"), created: this.#now, object: "charge", payment_intent: intent })
    return refund.id
  }

  /** Returns the refund with its balance transaction expanded. */
  expandedRefund(refund: StripeObject): StripeObject {
    return { ...refund, balance_transaction: this.#moves.get(refund["balance_transaction"]) ?? null }
  }

  updateRefund(id: string, status: string): StripeEvent {
    const refund = this.#change(this.refunds, id, { status })
    return this.#tell(status === "failed" ? "refund.failed" : "refund.updated", refund)
  }

  /** Opens a dispute. The account's balance is in the currency `settled`. */
  dispute(intent: string, cents: number, { currency = "usd", settled = currency }: Disputed = {}): string {
    const dispute = {
      id: this.#id("du"),
      object: "dispute",
      created: this.#now++,
      amount: cents,
      currency,
      status: "needs_response",
      payment_intent: intent,
      balance_transactions: []
    }
    this.disputes.set(dispute.id, dispute)
    this.#settled.set(dispute.id, settled)
    this.#tell("charge.dispute.created", dispute)
    return dispute.id
  }

  readonly #move = (id: string, sign: 1 | -1, cents?: number) => {
    const { amount, balance_transactions: moves } = decodeDispute(this.disputes.get(id))
    return this.#change(this.disputes, id, {
      balance_transactions: [...moves, { amount: sign * (cents ?? amount), currency: this.#settled.get(id) }]
    })
  }

  withdraw(id: string, cents?: number): StripeEvent {
    return this.#tell("charge.dispute.funds_withdrawn", this.#move(id, -1, cents))
  }

  /** Returns the money of a won dispute. In another currency, it may be more or less than the amount that was withdrawn. */
  reinstate(id: string, cents?: number): StripeEvent {
    return this.#tell("charge.dispute.funds_reinstated", this.#move(id, 1, cents))
  }

  close(id: string, status: "won" | "lost"): StripeEvent {
    return this.#tell("charge.dispute.closed", this.#change(this.disputes, id, { status }))
  }

  /** A `PaymentProvider` over this account, without HTTP. */
  get provider(): PaymentProvider["Type"] {
    const since = (objects: ReadonlyMap<string, StripeObject>, at: Date) =>
      [...objects.values()].filter(({ created }) => created * 1000 >= at.getTime())
    const sessions = (at = new Date(0)) =>
      since(this.sessions, at).map((session) => sessionOf(decodeSession(this.expanded(session))))
    const listed = <A>(items: ReadonlyArray<A>) => ({ items, unreadable: 0 })
    const reversals = (at = new Date(0), show = (refund: StripeObject) => refund) => [
      ...since(this.refunds, at).flatMap((refund) => toRefundReversals(decodeRefund(show(refund)))),
      ...since(this.disputes, at).flatMap((dispute) => toDisputeReversals(decodeDispute(dispute)))
    ]
    return {
      createSession: ({ cents, payment }) =>
        Effect.sync(() => sessionOf(decodeSession(this.createSession({ cents, payment })))),
      session: (id) => Effect.sync(() => sessions().find((session) => session.id === id)),
      sessionOf: (intent) => Effect.sync(() => sessions().find(({ paymentIntent }) => paymentIntent === intent)),
      reversals: (intent) =>
        Effect.sync(() => {
          const all = reversals(new Date(0), (refund) => this.expandedRefund(refund))
          return all.filter(({ paymentIntent }) => paymentIntent === intent)
        }),
      sessionsSince: (at) => Effect.sync(() => listed(sessions(at))),
      reversalsSince: (at) => Effect.sync(() => listed(reversals(at)))
    }
  }
}
