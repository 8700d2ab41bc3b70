/** `serveInvoices` serves vendors' admin APIs, which return invoices. It answers by path and records the requests. */

import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"
import { listen } from "../Listening.ts"

export interface InvoiceCall {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface BooksAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** A text is sent unchanged. */
  readonly body: unknown
}

/** Listens until the scope closes. */
export const serveInvoices = Effect.fnUntraced(function* (answer: (call: InvoiceCall, number: number) => BooksAnswer) {
  const calls: Array<InvoiceCall> = []
  const server = createServer((request, response) => {
    const chunks: Array<Uint8Array> = []
    request.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    request.on("end", () => {
      const call: InvoiceCall = {
        method: request.method ?? "",
        url: new URL(request.url ?? "/", "http://books.test"),
        headers: request.headers,
        body: Buffer.concat(chunks).toString("utf8")
      }
      calls.push(call)
      const { body, headers = {}, status = 200 } = answer(call, calls.length)
      response.writeHead(status, { "content-type": "application/json", ...headers })
      response.end(typeof body === "string" ? body : JSON.stringify(body))
    })
  })
  const port = yield* Effect.orDie(listen(server))
  return { calls, baseUrl: `http://127.0.0.1:${port}` }
})
