/** `make` serves Stripe's API over HTTP for one account. `sign` and `deliver` send its events, or forged ones. */

import { createHmac } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Effect } from "effect"
import type { Answer } from "../client/HttpCalls.ts"
import { listen } from "../Listening.ts"
import { StripeAccount, type StripeEvent, type StripeObject } from "./StripeAccount.ts"

export const secretKey = "sk_test_5ecret"
export const webhookSecret = "whsec_5igning"

/** A request that the API received. */
export interface StripeCall {
  readonly method: string
  readonly path: string
  readonly form: URLSearchParams
  readonly idempotencyKey: string | undefined
}

const textOf = async (request: IncomingMessage) => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

const pageOf = (objects: ReadonlyArray<StripeObject>, query: URLSearchParams) => {
  const intent = query.get("payment_intent")
  const since = Number(query.get("created[gte]") ?? 0)
  const newest = objects
    .filter((object) => object.created >= since && (intent === null || object["payment_intent"] === intent))
    .toReversed()
  const from = newest.findIndex(({ id }) => id === query.get("starting_after")) + 1
  const limit = Number(query.get("limit") ?? 10)
  return { object: "list", data: newest.slice(from, from + limit), has_more: newest.length > from + limit }
}

/** Replaces the next answers of the API: a status or a broken connection. `none` replaces nothing. */
export type Trouble = number | "break" | "break after" | "none"

export interface Page {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

interface Options {
  readonly port?: number
  readonly secretKey?: string
  /** The base URL of payment pages, without a session's id. */
  readonly pages?: string
  /** Answers requests outside the API. */
  readonly answerPage?: (method: string, url: URL, form: URLSearchParams) => Page
}

export const makeWith = Effect.fnUntraced(function* (options: Options = {}) {
  const account = new StripeAccount()
  const ownKey = options.secretKey ?? secretKey
  const calls: Array<StripeCall> = []
  const troubles: Array<Trouble> = []
  const made = new Map<string, { readonly form: string; readonly session: StripeObject }>()

  const createSession = (text: string, key: string) => {
    const kept = made.get(key)
    if (kept !== undefined)
      return kept.form === text ? [200, kept.session] : [400, { error: { type: "idempotency_error" } }]
    const form = new URLSearchParams(text)
    const session = account.createSession({
      ...(options.pages === undefined ? {} : { pages: options.pages }),
      payment: form.get("metadata[payment]") ?? "",
      successUrl: form.get("success_url") ?? undefined,
      cancelUrl: form.get("cancel_url") ?? undefined,
      cents: Number(form.get("line_items[0][price_data][unit_amount]")),
      currency: form.get("line_items[0][price_data][currency]") ?? ""
    })
    made.set(key, { form: text, session })
    return [200, session]
  }

  const answer = (method: string, url: URL, text: string, key = ""): ReadonlyArray<unknown> => {
    const { pathname, searchParams } = url
    if (method === "POST" && pathname === "/v1/checkout/sessions") return createSession(text, key)
    const isAskedFor = (field: string) => searchParams.get("expand[0]") === field
    if (pathname === "/v1/checkout/sessions") {
      const page = pageOf([...account.sessions.values()], searchParams)
      const shown = (session: StripeObject) => (isAskedFor("data.payment_intent") ? account.expanded(session) : session)
      return [200, { ...page, data: page.data.map(shown) }]
    }
    if (pathname === "/v1/refunds") return [200, pageOf([...account.refunds.values()], searchParams)]
    if (pathname === "/v1/disputes") return [200, pageOf([...account.disputes.values()], searchParams)]
    const refund = account.refunds.get(pathname.split("/").at(-1) ?? "")
    if (refund !== undefined) return [200, isAskedFor("balance_transaction") ? account.expandedRefund(refund) : refund]
    const found = account.sessions.get(pathname.split("/").at(-1) ?? "")
    if (found === undefined) return [404, { error: { type: "invalid_request_error" } }]
    return [200, isAskedFor("payment_intent") ? account.expanded(found) : found]
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const text = await textOf(request)
    const { headers, method = "", url = "" } = request
    if (options.answerPage !== undefined && !url.startsWith("/v1/")) {
      const page = options.answerPage(method, new URL(url, "http://stripe"), new URLSearchParams(text))
      return void response.writeHead(page.status, page.headers).end(page.body)
    }
    const key = headers["idempotency-key"]
    const idempotencyKey = typeof key === "string" ? key : undefined
    calls.push({ method, path: url, form: new URLSearchParams(text), idempotencyKey })
    const trouble = troubles.shift()
    if (trouble === "break") return void response.socket?.destroy()
    const isKnown = headers.authorization === `Bearer ${ownKey}` && headers["stripe-version"] !== undefined
    const [status, body] = isKnown
      ? typeof trouble === "number"
        ? [trouble, { error: { type: "api_error", message: `failed for ${ownKey}` } }]
        : answer(method, new URL(url, "http://stripe"), text, idempotencyKey)
      : [401, { error: { type: "invalid_request_error" } }]
    if (trouble === "break after") return void response.socket?.destroy()
    response.writeHead(Number(status), { "content-type": "application/json", "request-id": "req_1" })
    response.end(JSON.stringify(body))
  }
  const server = createServer((request, response) => void serve(request, response))
  const url = `http://127.0.0.1:${yield* Effect.orDie(listen(server, options.port === undefined ? {} : { port: options.port }))}`
  return { account, calls, troubles, url }
})

export const make = makeWith()

export type FakeStripe = Effect.Effect.Success<typeof make>

/** The environment variables with which a gateway uses this account for payments. */
export const environmentFor = ({ url }: FakeStripe) => ({
  STRIPE_SECRET_KEY: secretKey,
  STRIPE_WEBHOOK_SECRET: webhookSecret,
  STRIPE_API_BASE: url
})

/** Returns the signature header for a body that was signed `age` seconds ago. */
export const sign = (body: string, { age = 0, secret = webhookSecret } = {}): string => {
  const time = Math.floor(Date.now() / 1000) - age
  return `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`
}

export const deliver = (gateway: string, event: StripeEvent) => {
  const body = JSON.stringify(event, null, 2)
  return Effect.promise(async (): Promise<Answer> => {
    const headers = { "stripe-signature": sign(body) }
    const response = await fetch(`${gateway}/stripe/webhook`, { method: "POST", body, headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })
}
