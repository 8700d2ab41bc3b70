import { SqlClient } from "@effect/sql"
import { assert, layer as withLayer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import type { openAccount } from "../../harness/client/Account.ts"
import { rateOf, soon } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/ImageClient.ts"
import { dump } from "../../harness/database/Dump.ts"
import { draw, edit, gateway, keyed, onFirst, onSecond, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { json, type Reply, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, gif, painted, paints } from "../../harness/upstream/ImageReplies.ts"
import { Upstreams } from "../../harness/upstream/Upstreams.ts"

const word = "zebra-crossing-asked"
const say = (model: string, over: object = {}) => asked(model, { prompt: word, ...over })
const image = gif.toString("base64")

type Expected = Partial<Omit<RequestRow, "attempts">> & {
  readonly attempts?: ReadonlyArray<{
    route: string
    provider: string
    outcome: string
    status?: number
    cost?: bigint
  }>
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

const tokenless = { promptTokens: null, completionTokens: null, cachedTokens: null, reasoningTokens: null }
const drawn = { ...tokenless, status: 200, code: null, notes: [], stream: false, charge: NanoUsd(usualPrice) }
const free = { ...tokenless, charge: zero, cost: null, notes: [], firstByteMs: null }
/** Of one picture, to the operator. */
const cost = NanoUsd(30_000_000n)
const unread = { ...free, model: null, route: null, attempts: [] }

const cases: ReadonlyArray<Case> = [
  {
    what: "an image",
    body: say("art"),
    replies: { first: paints() },
    row: {
      ...drawn,
      model: "art",
      route: "art@first",
      cost,
      attempts: [tried("art", "first", "ok", 200)]
    }
  },
  {
    what: "an edit",
    body: say("pair", { image }),
    replies: { first: paints() },
    row: { ...drawn, model: "pair", route: "pair@first", cost: null, attempts: [tried("pair", "first", "ok", 200)] }
  },
  {
    what: "a move to the next route",
    body: say("pair"),
    replies: { first: json(503, {}), second: paints() },
    row: {
      ...drawn,
      route: "pair@second",
      attempts: [tried("pair", "first", "retry", 503), tried("pair", "second", "ok", 200)]
    }
  },
  { what: "no JSON", body: `{"${word}`, row: { ...unread, status: 400, code: null } },
  {
    what: "a field out of its range",
    body: say("art", { n: 2 }),
    row: { ...unread, status: 400, code: null, model: "art" }
  },
  {
    what: "an unknown model",
    body: say("nobody"),
    row: { ...unread, status: 404, code: "model_not_found", model: "nobody" }
  },
  { what: "too large a body", body: word.repeat(1_000), row: { ...unread, status: 413, code: "request_too_large" } },
  {
    what: "no scope",
    account: { scopes: ["chat", "videos"] },
    body: say("art"),
    row: { ...unread, status: 403, code: "insufficient_scope" }
  },
  {
    what: "no credits",
    account: { nanoUsd: 0n },
    body: say("art"),
    row: { ...unread, status: 402, code: "insufficient_quota", model: "art" }
  },
  {
    what: "a cap",
    account: { cap: { amount: 0n, period: "day" } },
    body: say("art"),
    row: { ...unread, status: 402, code: "spend_limit_exceeded", model: "art" }
  },
  {
    what: "a reference that is none",
    body: say("art", { image: Buffer.from(word).toString("base64") }),
    row: { ...unread, status: 400, code: null, model: "art" }
  },
  {
    what: "moderation",
    body: say("art"),
    replies: { first: json(400, { error: { message: "no", code: "moderation_blocked" } }) },
    row: { ...free, status: 400, code: null, route: null, attempts: [tried("art", "first", "moderation", 400)] }
  },
  {
    what: "a page for a picture",
    body: say("weak"),
    replies: { first: paints(Buffer.from(`<html>${word}`)) },
    row: { ...free, status: 502, code: "upstream_error", attempts: [{ ...tried("weak", "first", "retry", 200), cost }] }
  },
  {
    what: "no route left",
    body: say("pair"),
    replies: { first: json(429, {}), second: (response) => void response.socket?.destroy() },
    row: {
      ...free,
      status: 503,
      code: "no_provider_available",
      attempts: [tried("pair", "first", "limit", 429), tried("pair", "second", "network")]
    }
  }
]

const served = gateway(
  {
    art: { routes: [{ ...onFirst, cost: { per_image_usd: 0.03 } }] },
    pair: { routes: [onFirst, onSecond] },
    weak: { routes: [{ ...onFirst, cost: { per_image_usd: 0.03 } }] }
  },
  { MAX_BODY_BYTES: "10000", LOG_LEVEL: "all" }
)

/** A row holds what is expected, belongs to the caller, and its times make sense. */
const assertRow = (row: RequestRow, account: Pick<RequestRow, "orgId" | "keyId">, { attempts, ...rest }: Expected) => {
  assert.deepInclude<Partial<RequestRow>>(row, { surface: "image", ...account, ...rest })
  const outcomes = row.attempts.map(({ cost: spent, outcome, provider, route, status }) => {
    const known = { route, provider, outcome, ...(status !== undefined && { status }) }
    return spent === undefined ? known : { ...known, cost: spent }
  })
  if (attempts !== undefined) assert.deepStrictEqual(outcomes, [...attempts])
  assert.isAtLeast(row.totalMs, row.firstByteMs ?? 0)
  if (row.status === 200) assert.isNumber(row.firstByteMs)
}

const ids = { next: 0 }

withLayer(served, { excludeTestServices: true })("the request log of images", (it) => {
  it.effect.each(cases)("has a row of $what", ({ account, body, replies = {}, row }) =>
    Effect.gen(function* () {
      const { first, second } = yield* Upstreams
      const { spent, ...customer } = yield* Served.customer(account)
      if (replies.first !== undefined) yield* first.script(replies.first)
      if (replies.second !== undefined) yield* second.script(replies.second)
      const requestId = `image-${ids.next++}`
      const answer = yield* draw(customer, body, { headers: { "x-request-id": requestId } })
      const logged = yield* Served.logged(requestId)
      assertRow(logged, { orgId: customer.org, keyId: customer.key }, row)
      assert.strictEqual(answer.status, row.status)
      assert.strictEqual(yield* spent, logged.charge)
    })
  )

  it.effect("has rows of what a key did: the image, the conflict, the replay, the refusal", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      const { funds, spent, ...customer } = yield* Served.customer()
      const gate = yield* Deferred.make<void>()
      const calls = first.calls.length
      const reply = JSON.stringify(painted(gif, { revised_prompt: "hush" }))
      yield* first.script(steps({ type: "application/json" }, Deferred.await(gate), reply))
      const asking = (name: string, body: object = say("art")) =>
        draw(customer, body, { headers: { ...keyed("k").headers, "x-request-id": `key-${name}` } })
      const making = yield* Effect.fork(asking("made"))
      yield* soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1)))
      const held = (yield* funds).held
      assert.strictEqual(held, usualPrice)
      assert.strictEqual((yield* asking("conflict")).status, 409)
      assert.strictEqual((yield* funds).held, held)
      yield* Deferred.succeed(gate, undefined)
      imageOf(yield* Fiber.join(making))
      assert.isTrue(isReplay(yield* asking("replayed")))
      assert.strictEqual((yield* asking("other", say("art", { image }))).status, 400)
      const rows = yield* Effect.forEach(["made", "conflict", "replayed", "other"], (name) =>
        Served.logged(`key-${name}`)
      )
      const none = { ...free, route: null, attempts: [], model: "art" }
      const expected: ReadonlyArray<Expected> = [
        { ...drawn, route: "art@first", cost },
        { ...none, status: 409, code: "idempotency_conflict" },
        { ...none, ...drawn, charge: zero, notes: ["replayed"], firstByteMs: rows[2]?.firstByteMs ?? null },
        { ...none, status: 400, code: null }
      ]
      for (const [index, row] of rows.entries()) {
        assertRow(row, { orgId: customer.org, keyId: customer.key }, expected[index] ?? {})
      }
      assert.strictEqual(yield* spent, usualPrice)
    })
  )

  it.effect("has a row of one over the rate, and of an edit", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer({ rpm: 1 })
      yield* first.script(paints())
      yield* edit(customer, say("art", { image }), { headers: { "x-request-id": "image-edit" } })
      const over = yield* edit(customer, say("art"), { headers: { "x-request-id": "image-over" } })
      assert.deepStrictEqual([over.status, rateOf(over)], [429, { limit: 1, remaining: 0 }])
      const account = { orgId: customer.org, keyId: customer.key }
      assertRow(yield* Served.logged("image-edit"), account, { ...drawn, model: "art" })
      assertRow(yield* Served.logged("image-over"), account, { ...unread, status: 429, code: "rate_limit_exceeded" })
    })
  )

  it.effect("agrees with the ledger, and holds no word of any prompt and no picture; nor does any other table", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const strays = yield* sql`
        SELECT request_log.id FROM request_log LEFT JOIN holds ON holds.id = hold_id
        WHERE charge <> coalesce(holds.charged, 0) OR holds.state = 'open'`
      assert.lengthOf(strays, 0)
      const everything = yield* dump
      assert.include(everything, "image-over")
      const { stderr, stdout } = yield* Served.ServedGateway
      for (const hidden of ["zebra", image, image.slice(0, 20)]) {
        assert.notInclude(everything, hidden)
        assert.notInclude(`${stdout()}${stderr()}`, hidden)
      }
    })
  )
})
