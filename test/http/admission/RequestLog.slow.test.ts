import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import { zero } from "../../../src/domain/Money.ts"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import { bearer, call, chat, chatPath, rateOf, soon } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/MediaClient.ts"
import { gif } from "../../harness/fixtures/TinyMedia.ts"
import { draw, edit, keyed, gatewayProcess as ofImages, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { steps } from "../../harness/upstream/FakeUpstream.ts"
import { painted, paints } from "../../harness/upstream/Replies.ts"
import { answers, gatewayProcess, onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { dump } from "./Dump.ts"
import {
  chats,
  cost,
  drawn,
  type Expected,
  image,
  images,
  imagine,
  say,
  type Try,
  told,
  unread,
  word
} from "./RequestLogCases.ts"

type Owner = Pick<Served.Customer, "org" | "key">

/** A row holds what is expected, belongs to the caller, and its times make sense. */
const assertRow = (row: RequestRow, { key, org }: Owner, { attempts, ...rest }: Expected) => {
  assert.deepInclude<Partial<RequestRow>>(row, { orgId: org, keyId: key, ...rest })
  const tries = row.attempts.map(({ cost: spent, outcome, provider, route, status }) => ({
    route,
    provider,
    outcome,
    ...(status === undefined ? {} : { status }),
    ...(spent === undefined || row.surface === "chat" ? {} : { cost: spent })
  }))
  if (attempts !== undefined) assert.deepStrictEqual<ReadonlyArray<Try>>(tries, attempts)
  assert.isAtLeast(row.totalMs, row.firstByteMs ?? 0)
  if (row.status === 200) assert.isNumber(row.firstByteMs)
}

const env = { MAX_BODY_BYTES: "10000", LOG_LEVEL: "all" }
const pair = { routes: [onFirst, onSecond] }
const cheap = { routes: [{ ...onFirst, cost: { prompt_per_1m_usd: 0.5, completion_per_1m_usd: 1 } }] }
const costly = { routes: [{ ...onFirst, cost: { per_image_usd: 0.03 } }] }
const surfaces = [
  {
    surface: "chat",
    cases: chats,
    ask: chat,
    body: say("main"),
    reply: answers(told),
    layer: gatewayProcess({ main: cheap, weak: {}, breaking: {}, pair }, env)
  },
  {
    surface: "image",
    cases: images,
    ask: edit,
    body: imagine("main", { image }),
    reply: paints(),
    layer: ofImages({ main: costly, weak: costly, pair }, env)
  }
] as const

const ids = { next: 0 }

for (const { ask, body, cases, layer, reply, surface } of surfaces) {
  withLayer(layer)(`the request log of the surface ${surface}`, (it) => {
    it.effect.each(cases)("has a row of $what", function* (one) {
      const { first, second } = yield* Upstreams
      const [reply, next] = one.replies ?? []
      const { spent, ...customer } = yield* Served.customer(one.account)
      if (reply !== undefined) yield* first.script(reply)
      if (next !== undefined) yield* second.script(next)
      const requestId = `row-${ids.next++}`
      const send = surface === "chat" ? chat : draw
      const answer = yield* send(customer, one.body, { headers: { "x-request-id": requestId } })
      const logged = yield* Served.logged(requestId)
      assertRow(logged, customer, { surface, ...one.row })
      assert.strictEqual(answer.status, one.row.status)
      assert.strictEqual(yield* spent, logged.charge)
    })

    it.effect("has rows of a request over the rate and of the one before it", function* () {
      const { first } = yield* Upstreams
      const customer = yield* Served.customer({ rpm: 1 })
      yield* first.script(reply)
      yield* ask(customer, body, { headers: { "x-request-id": "row-last" } })
      const over = yield* ask(customer, body, { headers: { "x-request-id": "row-over" } })
      assert.deepStrictEqual([over.status, rateOf(over)], [429, { limit: 1, remaining: 0 }])
      assertRow(yield* Served.logged("row-last"), customer, { surface, status: 200, code: null, model: "main" })
      assertRow(yield* Served.logged("row-over"), customer, { ...unread, status: 429, code: "rate_limit_exceeded" })
    })

    it.effect.runIf(surface === "image")(
      "has rows of a first result, a conflict, a replay and a refusal under one key",
      function* () {
        const { first } = yield* Upstreams
        const { funds, spent, ...customer } = yield* Served.customer()
        const gate = yield* Deferred.make<void>()
        const calls = first.calls.length
        const held = JSON.stringify(painted(gif, { revised_prompt: "hush" }))
        yield* first.script(steps({ type: "application/json" }, Deferred.await(gate), held))
        const asking = (name: string, more: object = {}) =>
          draw(customer, imagine("main", more), { headers: { ...keyed("k").headers, "x-request-id": `key-${name}` } })
        const making = yield* Effect.fork(asking("made"))
        yield* soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1)))
        assert.strictEqual((yield* funds).held, usualPrice)
        assert.strictEqual((yield* asking("conflict")).status, 409)
        assert.strictEqual((yield* funds).held, usualPrice)
        yield* Deferred.succeed(gate, undefined)
        imageOf(yield* Fiber.join(making))
        assert.isTrue(isReplay(yield* asking("replayed")))
        assert.strictEqual((yield* asking("other", { image })).status, 400)
        const none: Expected = { ...unread, surface, model: "main" }
        const { firstByteMs: _, ...replayed } = { ...none, ...drawn, charge: zero, notes: ["replayed"] }
        for (const [name, row] of Object.entries<Expected>({
          made: { ...drawn, route: "main@first", cost },
          conflict: { ...none, status: 409, code: "idempotency_conflict" },
          replayed,
          other: { ...none, status: 400, code: null }
        })) {
          assertRow(yield* Served.logged(`key-${name}`), customer, row)
        }
        assert.strictEqual(yield* spent, usualPrice)
      }
    )

    it.effect("has no row of unauthenticated requests, reads and unknown paths", function* () {
      const sql = yield* SqlClient.SqlClient
      const customer = yield* Served.customer()
      const headers = { "x-request-id": "row-never" }
      yield* ask({ secret: "ggw_nobody" }, body, { headers })
      yield* call(chatPath, { body, headers })
      for (const path of ["/v1/nowhere", chatPath, "/v1/models", "/v1/credits"]) {
        yield* call(path, { headers: { ...headers, ...bearer(customer.secret) } })
      }
      yield* ask(customer, "{", { headers: { "x-request-id": "row-after" } })
      yield* Served.logged("row-after")
      assert.lengthOf(yield* sql`SELECT 1 FROM request_log WHERE request_id = 'row-never'`, 0)
    })

    it.effect("agrees with the ledger, and no table has any text of a prompt or output", function* () {
      const sql = yield* SqlClient.SqlClient
      const strays = yield* sql`
          SELECT request_log.id FROM request_log LEFT JOIN all_holds AS holds ON holds.id = hold_id
          WHERE charge <> coalesce(holds.charged, 0) OR holds.state = 'open'`
      assert.lengthOf(strays, 0)
      const everything = yield* dump
      assert.include(everything, "row-over")
      const { stderr, stdout } = yield* Served.ServedProcess
      for (const hidden of [word, told, "zebra", image, image.slice(0, 20)]) {
        assert.notInclude(everything, hidden)
        assert.notInclude(`${stdout()}${stderr()}`, hidden)
      }
    })
  })
}
