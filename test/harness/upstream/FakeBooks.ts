/** Vendors' admin APIs: answers by path, pages included, and the requests that came. */

import { createServer, type IncomingHttpHeaders } from "node:http"
import { Effect } from "effect"
import { listen } from "../Listening.ts"

export interface BooksCall {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface BooksAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** A text is sent as it is. */
  readonly body: unknown
}

/** Listens for as long as the scope lasts. */
export const fakeBooks = Effect.fnUntraced(function* (answer: (call: BooksCall, number: number) => BooksAnswer) {
  const calls: Array<BooksCall> = []
  const server = createServer((request, response) => {
    const chunks: Array<Uint8Array> = []
    request.on("data", (chunk: Uint8Array) => chunks.push(chunk))
    request.on("end", () => {
      const call: BooksCall = {
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
