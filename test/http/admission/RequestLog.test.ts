import { SqlClient } from "@effect/sql"
import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import type { openAccount } from "../../harness/client/Account.ts"
import { bearer, call, chat, chatPath, talk } from "../../harness/client/HttpCalls.ts"
import { dump } from "../../harness/database/Dump.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { cut, event, json, type Reply, sse, text } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  chunk,
  gateway,
  onFirst,
  onSecond,
  streams,
  Upstreams,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"

const asked = "zebra-crossing-asked"
const told = "zebra-crossing-told"
const say = (model: string, over: object = {}) => ({ ...talk(model, asked), ...over })
const streamed = { stream: true }

type Expected = Partial<Omit<RequestRow, "attempts">> & {
  readonly attempts?: ReadonlyArray<{ route: string; provider: string; outcome: string; status?: number }>
}

interface Case {
  readonly what: string
  readonly account?: Parameters<typeof openAccount>[0]
  readonly body: unknown
  readonly replies?: { readonly first?: Reply; readonly second?: Reply }
  readonly row: Expected
}

const tried = (model: string, provider: string, outcome: string, status?: number) => ({
  route: `${model}@${provider}`,
  provider,
  outcome,
  ...(status === undefined ? {} : { status })
})

const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0, notes: [] }
const free = { charge: zero, cost: null, promptTokens: null, completionTokens: null, notes: [], firstByteMs: null }
const unread = { ...free, model: null, route: null, attempts: [] }

const cases: ReadonlyArray<Case> = [
  {
    what: "an answer",
    body: say("talk"),
    replies: { first: answers(told) },
    row: {
      ...usage,
      status: 200,
      code: null,
      model: "talk",
      route: "talk@first",
      stream: false,
      charge: NanoUsd(usualCharge),
      cost: NanoUsd(10_000n),
      attempts: [tried("talk", "first", "ok", 200)]
    }
  },
  {
    what: "a stream",
    body: say("talk", streamed),
    replies: { first: streams(told, told) },
    row: { ...usage, status: 200, code: null, route: "talk@first", stream: true, charge: NanoUsd(usualCharge) }
  },
  { what: "no JSON", body: `{"${asked}`, row: { ...unread, status: 400, code: null } },
  {
    what: "a field out of its range",
    body: say("talk", { temperature: 9 }),
    row: { ...unread, status: 400, code: null, model: "talk" }
  },
  {
    what: "a model that cannot",
    body: say("talk", { web_search: true, stream: true }),
    row: { ...unread, status: 400, code: null, model: "talk", stream: true }
  },
  {
    what: "an unknown model",
    body: say("nobody"),
    row: { ...unread, status: 404, code: "model_not_found", model: "nobody" }
  },
  {
    what: "too large a body",
    body: asked.repeat(1_000),
    row: { ...unread, status: 413, code: "request_too_large" }
  },
  {
    what: "no scope",
    account: { scopes: ["videos"] },
    body: say("talk"),
    row: { ...unread, status: 403, code: "insufficient_scope" }
  },
  {
    what: "no credits",
    account: { nanoUsd: 0n },
    body: say("talk"),
    row: { ...unread, status: 402, code: "insufficient_quota", model: "talk" }
  },
  {
    what: "a cap",
    account: { cap: { amount: 0n, period: "day" } },
    body: say("talk"),
    row: { ...unread, status: 402, code: "spend_limit_exceeded", model: "talk" }
  },
  {
    what: "a rejection",
    body: say("talk"),
    replies: { first: json(422, { error: { message: "no" } }) },
    row: { ...free, status: 400, code: null, model: "talk", attempts: [tried("talk", "first", "request", 422)] }
  },
  {
    what: "a provider's error",
    body: say("weak"),
    replies: { first: json(500, {}) },
    row: { ...free, status: 502, code: "upstream_error", attempts: [tried("weak", "first", "retry", 500)] }
  },
  {
    what: "an answer that is none",
    body: say("weak"),
    replies: { first: json(200, { [told]: told }) },
    row: { ...free, status: 502, code: "upstream_error", attempts: [tried("weak", "first", "retry", 200)] }
  },
  {
    what: "a page",
    body: say("weak"),
    replies: { first: text(200, "text/html", told) },
    row: { ...free, status: 502, code: "upstream_error", attempts: [tried("weak", "first", "retry", 200)] }
  },
  {
    what: "a move to the next route",
    body: say("pair"),
    replies: { first: json(503, {}), second: answers(told) },
    row: {
      ...usage,
      status: 200,
      code: null,
      route: "pair@second",
      charge: NanoUsd(usualCharge),
      attempts: [tried("pair", "first", "retry", 503), tried("pair", "second", "ok", 200)]
    }
  },
  {
    what: "no route left",
    body: say("pair", streamed),
    replies: { first: json(429, {}), second: (response) => void response.socket?.destroy() },
    row: {
      ...free,
      status: 503,
      code: "no_provider_available",
      route: null,
      stream: true,
      attempts: [tried("pair", "first", "limit", 429), tried("pair", "second", "network")]
    }
  },
  {
    what: "a stream that breaks",
    body: say("breaking", streamed),
    replies: { first: sse(chunk({ content: told }), cut) },
    row: { status: 200, code: "stream_error", route: "breaking@first", charge: zero, cost: null }
  },
  {
    what: "a stream that turns into garbage",
    body: say("breaking", streamed),
    replies: { first: sse(chunk({ content: told }), `data: {${told}\n\n`) },
    row: { status: 200, code: "stream_error", route: "breaking@first", charge: zero, cost: null }
  },
  {
    what: "a stream with an error in it",
    body: say("breaking", streamed),
    replies: { first: sse(chunk({ content: told }), event({ error: { message: "no", code: 500 } })) },
    row: { status: 200, code: "stream_error", charge: zero }
  }
]

const cheap = { prompt_per_1m_usd: 0.5, completion_per_1m_usd: 1 }
const served = gateway(
  {
    talk: { routes: [{ ...onFirst, cost: cheap }] },
    weak: {},
    breaking: {},
    pair: { routes: [onFirst, onSecond] }
  },
  { MAX_BODY_BYTES: "10000", LOG_LEVEL: "all" }
)

const ids = { next: 0 }

/** A row holds what is expected, belongs to the caller, and its times make sense. */
const assertRow = (row: RequestRow, account: Pick<RequestRow, "orgId" | "keyId">, { attempts, ...rest }: Expected) => {
  assert.deepInclude<Partial<RequestRow>>(row, { surface: "chat", ...account, ...rest })
  const outcomes = row.attempts.map(({ outcome, provider, route, status }) =>
    status === undefined ? { route, provider, outcome } : { route, provider, outcome, status }
  )
  if (attempts !== undefined) assert.deepStrictEqual(outcomes, [...attempts])
  assert.isAtLeast(row.totalMs, row.firstByteMs ?? 0)
  if (row.status === 200) assert.isNumber(row.firstByteMs)
}

withLayer(served, { excludeTestServices: true })("the request log", (it) => {
  it.effect.each(cases)("has a row of $what", ({ account, body, replies = {}, row }) =>
    Effect.gen(function* () {
      const { first, second } = yield* Upstreams
      const { spent, ...customer } = yield* Served.customer(account)
      if (replies.first !== undefined) yield* first.script(replies.first)
      if (replies.second !== undefined) yield* second.script(replies.second)
      const requestId = `row-${ids.next++}`
      const answer = yield* chat(customer, body, { headers: { "x-request-id": requestId } })
      const logged = yield* Served.logged(requestId)
      assertRow(logged, { orgId: customer.org, keyId: customer.key }, row)
      assert.strictEqual(answer.status, row.status)
      assert.strictEqual(yield* spent, logged.charge)
    })
  )

  it.effect("has a row of one over the rate", () =>
    Effect.gen(function* () {
      const customer = yield* Served.customer({ rpm: 1 })
      yield* chat(customer, "{")
      yield* chat(customer, say("talk"), { headers: { "x-request-id": "row-over" } })
      const row = { ...unread, status: 429, code: "rate_limit_exceeded" }
      assertRow(yield* Served.logged("row-over"), { orgId: customer.org, keyId: customer.key }, row)
    })
  )

  it.effect("has none of those it does not know, nor of reads, nor of paths that are none", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const customer = yield* Served.customer()
      const headers = { "x-request-id": "row-never" }
      yield* chat({ secret: "ggw_nobody" }, say("talk"), { headers })
      yield* call(chatPath, { body: say("talk"), headers })
      for (const path of ["/v1/nowhere", chatPath, "/v1/models", "/v1/credits"]) {
        yield* call(path, { headers: { ...headers, ...bearer(customer.secret) } })
      }
      yield* chat(customer, "{", { headers: { "x-request-id": "row-after" } })
      yield* Served.logged("row-after")
      assert.lengthOf(yield* sql`SELECT 1 FROM request_log WHERE request_id = 'row-never'`, 0)
    })
  )

  it.effect("agrees with the ledger, and holds no word of any prompt or output; nor does any other table", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const strays = yield* sql`
        SELECT request_log.id FROM request_log LEFT JOIN holds ON holds.id = hold_id
        WHERE charge <> coalesce(holds.charged, 0) OR holds.state = 'open'`
      assert.lengthOf(strays, 0)
      const everything = yield* dump
      assert.include(everything, "row-over")
      for (const word of [asked, told, "zebra"]) assert.notInclude(everything, word)
      const { stderr, stdout } = yield* Served.ServedGateway
      assert.notInclude(`${stdout()}${stderr()}`, "zebra")
    })
  )
})
