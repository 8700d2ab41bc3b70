import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import { Webhook } from "standardwebhooks"
import { eventually } from "../../harness/database/Money.ts"
import { serving } from "../../harness/upstream/FakeUpstream.ts"

export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A customer's server, which keeps what it gets and answers as `reply` does. */
export const make = Effect.fnUntraced(function* (reply: (response: ServerResponse, received: Received) => void) {
  const all: Array<Received> = []
  const { url } = yield* serving((response, { bytes, headers: given, path }) => {
    const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, String(value)]))
    const received = { path, headers, body: bytes.toString("utf8") }
    all.push(received)
    reply(response, received)
  })
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
