import { createServer, type ServerResponse } from "node:http"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { eventually } from "../../harness/database/Money.ts"
import { listen } from "../../harness/Listening.ts"

export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A customer's server, which keeps what it gets and answers as `reply` does. */
export const make = Effect.fnUntraced(function* (reply: (response: ServerResponse, received: Received) => void) {
  const all: Array<Received> = []
  const server = createServer((request, response) => {
    let body = ""
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk))
    request.on("end", () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      const received = { path: request.url ?? "", headers, body }
      all.push(received)
      reply(response, received)
    })
  })
  const url = `http://127.0.0.1:${yield* Effect.orDie(listen(server))}`
  return {
    url,
    all,
    /** Waits for so many. */
    received: (count: number) =>
      eventually(
        Effect.sync(() => [...all]),
        ({ length }) => length >= count
      )
  }
})

export const ok = (response: ServerResponse) => response.writeHead(204).end()

/** The payload of a signature that is right, as the standard's own library says. */
export const verified = (secret: string, { body, headers }: Received): unknown =>
  new Webhook(secret).verify(body, { ...headers })

export const idOf = ({ headers }: Received): string => headers["webhook-id"] ?? ""
