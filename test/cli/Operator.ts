import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../../src/database/Database.ts"
import { eventually } from "../harness/database/Money.ts"
import { start } from "../harness/gateway/GatewayProcess.ts"
import { Cli, json, list } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
export const suite = Layer.provideMerge(database, Cli.layer)

export const Id = Schema.Struct({ id: Schema.String })

export interface Call {
  readonly path: string
  readonly id: string
  readonly key: string
  readonly body: Readonly<Record<string, unknown>>
}

interface Response {
  readonly status: number
  readonly body: string
}

/** A gateway with the sandbox on the suite's database, and a way to call it. */
export class OperatedGateway extends Context.Tag("test/OperatedGateway")<
  OperatedGateway,
  {
    /** Returns once the request is in the log, where it is one of a known key. */
    readonly send: (call: Call) => Effect.Effect<Response>
  }
>() {
  static readonly layer = Layer.scoped(
    OperatedGateway,
    Effect.gen(function* () {
      const { url } = yield* Cli
      const { url: base } = yield* start({ env: { DATABASE_URL: url, SANDBOX: "true" } })
      const sql = yield* SqlClient.SqlClient
      const rowsOf = (id: string) =>
        Effect.map(sql`SELECT id FROM request_log WHERE request_id = ${id}`, ({ length }) => length)
      const post = ({ body, id, key, path }: Call) =>
        Effect.promise(async () => {
          const response = await fetch(`${base}/v1${path}`, {
            method: "POST",
            headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": id },
            body: JSON.stringify(body)
          })
          return { status: response.status, body: await response.text() }
        })
      const send = Effect.fnUntraced(function* (call: Call) {
        const before = yield* rowsOf(call.id)
        const answer = yield* post(call)
        if (answer.status !== 401) yield* eventually(rowsOf(call.id), (rows) => rows > before)
        return answer
      })
      return { send: (call: Call) => Effect.orDie(send(call)) }
    })
  )
}

/** `suite` with a gateway, which its tests share. */
export const suiteWithGateway = Layer.provideMerge(OperatedGateway.layer, suite)

export const customer = Effect.fnUntraced(function* (credits = "100") {
  const name = `customer ${randomUUID()}`
  const { id: org } = yield* json("orgs", "create", name, "--credits", credits)
  const { id, key } = yield* json("keys", "create", "--org", name)
  return { name, org: String(org), keyId: String(id), key: String(key) }
})

export const chat = (content: string) => ({ model: "gemini-3.6-flash", messages: [{ role: "user", content }] })

export const shownOf = (id: string) =>
  Effect.map(list("requests", "show", id), ([row]) => Schema.decodeUnknownSync(Shown)(row))

export const Shown = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  status: Schema.Number,
  address: Schema.NullOr(Schema.String),
  user_agent: Schema.NullOr(Schema.String),
  provider_request_id: Schema.NullOr(Schema.String),
  charge_usd: Schema.Number,
  hold: Schema.NullOr(Schema.Struct({ amount_usd: Schema.Number, state: Schema.String })),
  timeline: Schema.Array(
    Schema.Struct({ event: Schema.String, detail: Schema.optional(Schema.NullOr(Schema.String)) })
  ),
  price: Schema.Struct({
    parts: Schema.Array(Schema.Struct({ unit: Schema.String, quantity: Schema.Number, amount_usd: Schema.Number })),
    price_usd: Schema.NullOr(Schema.Number),
    refunded_usd: Schema.Number,
    paid_usd: Schema.Number,
    why: Schema.String
  }),
  entries: Schema.Array(
    Schema.Struct({ kind: Schema.String, amount_usd: Schema.Number, ref: Schema.NullOr(Schema.String) })
  ),
  video: Schema.NullOr(Schema.Struct({ id: Schema.String, status: Schema.String }))
})

export const events = ({ timeline }: typeof Shown.Type) => timeline.map(({ event }) => event)

export const byCode = (a: number | null, b: number | null) => Number(a) - Number(b)

export const spendOf = (org: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ spent: string }>`SELECT coalesce(-sum(amount), 0)::text AS spent FROM ledger_entries
        WHERE org_id = ${org} AND (kind = 'charge' OR ref LIKE 'refund:%')`,
      ([row]) => Number(row?.spent) / 1e9
    )
  )
