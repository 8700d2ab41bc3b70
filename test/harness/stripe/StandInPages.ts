/** The pages of the local replacement for Stripe: a payment page and a list of payments. */

import type { Page } from "./FakeStripe.ts"
import type { StripeObject } from "./StripeAccount.ts"

const escape = (text: unknown) =>
  String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

const style = `
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem; vertical-align: top }
  tr { border-bottom: 1px solid #ccc } form { display: inline } input { width: 6rem } .note { color: #666 }`

export const html = (title: string, body: string, status = 200): Page => ({
  status,
  headers: { "content-type": "text/html; charset=utf-8" },
  body: `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(title)}</title><style>${style}</style><h1>${escape(title)}</h1>
<p class="note">A stand-in for Stripe. No money moves.</p>${body}</html>`
})

/** Returns a text such as `20.00 USD`. */
export const amountText = ({ amount, amount_total = amount, currency }: StripeObject) =>
  `${(Number(amount_total) / 100).toFixed(2)} ${String(currency).toUpperCase()}`

const button = (path: string, action: string, label: string, more = "") =>
  `<form method="post" action="${escape(path)}">${more}<button name="action" value="${action}">${label}</button></form> `

export const payPage = (session: StripeObject, isDeclined: boolean): Page => {
  const path = `/pay/${session.id}`
  const amount = amountText(session)
  if (session["status"] !== "open") {
    return html("Checkout", `<p>This page is ${escape(session["status"])}. <a href="/">All payments</a></p>`)
  }
  return html(
    `Pay ${amount}`,
    [
      isDeclined ? "<p><strong>The card was declined.</strong> Try again.</p>" : "",
      button(path, "pay", "Pay"),
      button(path, "debit", "Pay by bank debit, which takes days"),
      button(path, "decline", "Pay with a card that is declined"),
      button(path, "cancel", "Go back without paying"),
      button(path, "expire", "Let the page expire"),
      '<p><a href="/">All payments</a></p>'
    ].join("\n")
  )
}

export interface Sent {
  readonly id: string
  readonly type: string
  readonly outcome: string
}

interface Account {
  readonly isProcessing: (session: string) => boolean
  readonly sessions: ReadonlyMap<string, StripeObject>
  readonly refunds: ReadonlyMap<string, StripeObject>
  readonly disputes: ReadonlyMap<string, StripeObject>
}

const sessionActions = (account: Account, session: StripeObject) => {
  const path = `/sessions/${session.id}`
  if (session["status"] === "open") return `<a href="/pay/${session.id}">Open its page</a>`
  if (session["status"] !== "complete") return ""
  if (account.isProcessing(session.id)) {
    return button(path, "debit-succeeds", "The debit succeeds") + button(path, "debit-fails", "The debit fails")
  }
  if (session["payment_status"] !== "paid") return "The debit failed"
  const amount = `<input name="amount" aria-label="Amount" value="${(Number(session["amount_total"]) / 100).toFixed(2)}"> `
  return button(path, "refund", "Refund", amount) + button(path, "dispute", "Dispute")
}

const refundActions = ({ id, status }: StripeObject) =>
  status === "succeeded" ? button(`/refunds/${id}`, "fail", "The refund fails") : ""

const disputeActions = ({ id, status }: StripeObject) =>
  status === "needs_response"
    ? button(`/disputes/${id}`, "win", "Close as won") + button(`/disputes/${id}`, "lose", "Close as lost")
    : ""

const row = (...cells: ReadonlyArray<string>) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`

const rowsOf = (
  objects: ReadonlyMap<string, StripeObject>,
  intent: unknown,
  actionsOf: (object: StripeObject) => string
) =>
  [...objects.values()]
    .filter((object) => intent !== null && object["payment_intent"] === intent)
    .map((object) => row(`&nbsp;&nbsp;${object.id}`, amountText(object), escape(object["status"]), actionsOf(object)))
    .join("")

export const overview = (account: Account, sent: ReadonlyArray<Sent>, gateway: string): Page => {
  const { disputes, refunds, sessions } = account
  const payments = [...sessions.values()].toReversed().map((session) => {
    const intent = session["payment_intent"]
    const status = `${escape(session["status"])}, ${escape(session["payment_status"])}`
    return [
      row(
        `<strong>${session.id}</strong><br>${escape(intent ?? "")}`,
        amountText(session),
        status,
        sessionActions(account, session)
      ),
      rowsOf(refunds, intent, refundActions),
      rowsOf(disputes, intent, disputeActions)
    ].join("")
  })
  const events = sent
    .toReversed()
    .map(({ id, outcome, type }) => row(type, id, escape(outcome), button(`/events/${id}`, "send", "Send again")))
  return html(
    "Payments",
    [
      payments.length === 0
        ? "<p>There are no payments. Choose Add credits in the gateway's console to begin one.</p>"
        : `<table>${payments.join("")}</table>`,
      `<h2>Events</h2><p>They go to ${escape(gateway)}/stripe/webhook until it takes them.</p>`,
      `<table>${events.join("")}</table>`
    ].join("\n")
  )
}
