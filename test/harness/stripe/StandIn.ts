/** `standIn` is a local replacement for Stripe with payment pages, refunds and disputes. It sends events to a gateway. */

import { Cause, Effect, FiberSet, Schedule } from "effect"
import * as FakeStripe from "./FakeStripe.ts"
import { html, overview, payPage, type Sent } from "./StandInPages.ts"
import type { StripeAccount, StripeEvent, StripeObject } from "./StripeAccount.ts"

export interface StandInOptions {
  readonly port: number
  /** Such as `http://127.0.0.1:8787`. */
  readonly gateway: string
  readonly secretKey: string
  readonly webhookSecret: string
}

const back = (to: string): FakeStripe.Page => ({ status: 303, headers: { location: to }, body: "" })

const wrong = (message: string) => html("That is not possible", `<p>${message}. <a href="/">All payments</a></p>`, 400)

const missing = html("Not found", '<p><a href="/">All payments</a></p>', 404)

/** Returns undefined if the text is not an amount. */
const centsIn = (text: string | null) =>
  text !== null && /^\d{1,8}(?:\.\d{1,2})?$/.test(text.trim()) ? Math.round(Number(text) * 100) : undefined

const toAddress = (url: unknown) => (typeof url === "string" ? url : "/")

const refundedOf = ({ refunds }: StripeAccount, intent: string) =>
  [...refunds.values()]
    .filter((refund) => refund["payment_intent"] === intent && refund["status"] !== "failed")
    .reduce((sum, { amount }) => sum + Number(amount), 0)

const payActions = (account: StripeAccount, session: StripeObject, action: string | null): FakeStripe.Page => {
  const { id } = session
  if (session["status"] !== "open") return wrong("The page is no longer open")
  if (action === "decline") return back(`/pay/${id}?declined`)
  if (action === "cancel") return back(toAddress(session["cancel_url"]))
  if (action === "expire") account.expire(id)
  else if (action === "pay" || action === "debit") account.complete(id, action === "debit")
  else return wrong("The action must be pay, debit, decline, cancel or expire")
  return back(action === "expire" ? "/" : toAddress(session["success_url"]))
}

const refund = (account: StripeAccount, session: StripeObject, amount: string | null): FakeStripe.Page => {
  const intent = account.intentOf(session.id)
  const left = Number(session["amount_total"]) - refundedOf(account, intent)
  const cents = amount === null ? left : centsIn(amount)
  if (cents === undefined || cents <= 0 || cents > left) {
    return wrong(`The amount must be above 0 and at most ${(left / 100).toFixed(2)}`)
  }
  account.refund(intent, cents)
  return back("/")
}

const sessionActions = (account: StripeAccount, session: StripeObject, form: URLSearchParams): FakeStripe.Page => {
  const { id } = session
  const action = form.get("action")
  const isPaid = session["payment_status"] === "paid"
  if (isPaid && action === "refund") return refund(account, session, form.get("amount"))
  if (isPaid && action === "dispute") {
    account.withdraw(account.dispute(account.intentOf(id), Number(session["amount_total"])))
    return back("/")
  }
  const isPending = account.isProcessing(id)
  if (isPending && action === "debit-succeeds") account.succeed(id)
  else if (isPending && action === "debit-fails") account.fail(id)
  else return wrong("The payment does not allow this action now")
  return back("/")
}

const refundActions = (account: StripeAccount, { id, status }: StripeObject, action: string | null) => {
  if (status !== "succeeded" || action !== "fail") return wrong("Only a succeeded refund can fail")
  account.updateRefund(id, "failed")
  return back("/")
}

const disputeActions = (account: StripeAccount, { id, status }: StripeObject, action: string | null) => {
  if (status !== "needs_response") return wrong("The dispute is closed")
  if (action !== "win" && action !== "lose") return wrong("The action must be win or lose")
  if (action === "win") account.reinstate(id)
  account.close(id, action === "win" ? "won" : "lost")
  return back("/")
}

const post = async ({ gateway, webhookSecret }: StandInOptions, event: StripeEvent) => {
  const body = JSON.stringify(event)
  const response = await fetch(`${gateway}/stripe/webhook`, {
    method: "POST",
    body,
    headers: {
      "content-type": "application/json",
      "stripe-signature": FakeStripe.sign(body, { secret: webhookSecret })
    },
    signal: AbortSignal.timeout(10_000)
  })
  await response.arrayBuffer()
  if (!response.ok) throw new Error(`the gateway answered ${response.status}`)
}

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

const retries = Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("1 minute"))

export const standIn = Effect.fnUntraced(function* (options: StandInOptions) {
  const outcomes = new Map<string, string>()
  const runFork = yield* FiberSet.makeRuntime()

  const send = (event: StripeEvent) => {
    const record = (outcome: string) => Effect.sync(() => void outcomes.set(event.id, outcome))
    const attempt = Effect.tryPromise({ try: () => post(options, event), catch: reasonOf })
    return attempt.pipe(
      Effect.tapError((reason) => record(`not taken yet: ${reason}`)),
      Effect.retry(retries),
      Effect.zipRight(record("taken")),
      Effect.catchAllCause((cause) => record(`failed: ${Cause.pretty(cause)}`))
    )
  }

  const answer = (method: string, { pathname, searchParams }: URL, form: URLSearchParams): FakeStripe.Page => {
    const [, kind, id = ""] = pathname.split("/")
    if (method === "GET" && pathname === "/") {
      const sent = account.events.map((event): Sent => ({ ...event, outcome: outcomes.get(event.id) ?? "on its way" }))
      return overview(account, sent, options.gateway)
    }
    const session = account.sessions.get(id)
    if (method === "GET" && kind === "pay" && session) return payPage(session, searchParams.has("declined"))
    if (method !== "POST") return missing
    if (kind === "pay" && session) return payActions(account, session, form.get("action"))
    if (kind === "sessions" && session) return sessionActions(account, session, form)
    const refund = account.refunds.get(id)
    if (kind === "refunds" && refund) return refundActions(account, refund, form.get("action"))
    const dispute = account.disputes.get(id)
    if (kind === "disputes" && dispute) return disputeActions(account, dispute, form.get("action"))
    const event = account.events.find((one) => one.id === id)
    if (kind !== "events" || event === undefined) return missing
    runFork(send(event))
    return back("/")
  }

  /** Performs an action of a page and sends its events. */
  const answerPage = (method: string, url: URL, form: URLSearchParams) => {
    account.moveTo(Math.floor(Date.now() / 1000))
    const before = account.events.length
    const page = answer(method, url, form)
    for (const event of account.events.slice(before)) runFork(send(event))
    return page
  }

  const { account, calls, url } = yield* FakeStripe.makeWith({
    port: options.port,
    secretKey: options.secretKey,
    pages: `http://127.0.0.1:${options.port}/pay`,
    answerPage
  })
  return { account, calls, url }
})
