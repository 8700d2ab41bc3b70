import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Fiber, Layer } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, bearer, soon } from "../../harness/client/HttpCalls.ts"
import { logRequest } from "../../harness/database/Rows.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { holdJson, json, settled } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  catalogOver,
  completion,
  credentials,
  layer,
  onAbsent,
  onFirst,
  onSecond,
  prices,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const talk = {
  surface: "chat",
  family: "A",
  context_length: 100_000,
  max_output: 1_000,
  pricing: prices
}

const models = [
  {
    ...talk,
    id: "talk",
    capabilities: ["tools"],
    routes: [
      { ...onFirst, cost: { prompt_per_1m_usd: 0.5, completion_per_1m_usd: 1 } },
      { ...onSecond, cost: { prompt_per_1m_usd: 0.25, completion_per_1m_usd: 3 } },
      onAbsent
    ]
  },
  { ...talk, id: "mute", routes: [onAbsent] },
  { ...talk, id: "slow", routes: [onFirst] },
  {
    id: "picture",
    surface: "image",
    pricing: { per_image_usd: 0.04 },
    routes: [{ provider: "drawer", model: "vendor/picture", cost: { per_image_usd: 0.03 } }]
  },
  {
    id: "film",
    surface: "video",
    pricing: { per_second_usd: 0.1 },
    seconds: { allowed: [4, 8], default: 4 },
    routes: [{ provider: "drawer", model: "vendor/film" }]
  }
]

const served = Served.layer(
  Effect.map(Upstreams, (upstreams) => ({
    catalog: catalogOver("openai-chat", upstreams, { drawer: { adapter: "sandbox" } }, models),
    env: credentials
  }))
)

const begin = Effect.fnUntraced(function* (role: "read" | "write" = "write") {
  const { url } = yield* Served.ServedGateway
  const operator = yield* hire(role)
  const admin = adminAt(url, operator.token)
  const test = (model: string, body?: unknown, headers = {}) =>
    admin(`/models/${encodeURIComponent(model)}/test`, { method: "POST", headers, ...(body !== undefined && { body }) })
  const audited = Effect.flatMap(Audit, ({ list }) =>
    list(OrganizationScope.all, { actor: operator.name, action: "models.test", limit: 10 })
  )
  return { ...(yield* Upstreams), admin, test, audited, operator }
})

withLayer(Layer.provideMerge(served, layer))("models at the admin API", (it) => {
  it.effect("each is listed with its prices, lowest costs, margin and routes", function* () {
    const { admin } = yield* begin("read")
    const { data, ...rest } = read(yield* admin("/models"))
    const losses = ["talk@second: the price of completion per 1M is below what the provider charges"]
    assert.deepStrictEqual(rest, { sandbox: false, losses, other_routes: [], has_more: false, next: null })
    assert.deepStrictEqual(
      data.map(({ id }: { id: string }) => id),
      ["talk", "mute", "slow", "picture", "film"]
    )
    const [{ prices: listed, routes, ...first }, mute, , picture, film] = data
    assert.deepStrictEqual(first, {
      id: "talk",
      surface: "chat",
      callable: true,
      sandboxed: false,
      reason: null,
      context_length: 100_000,
      capabilities: ["tools"],
      lowest_margin_pct: -50,
      loss: true
    })
    assert.deepStrictEqual(listed.slice(0, 2), [
      { unit: "prompt per 1M", price_usd: 1, cost_usd: 0.25, margin_usd: 0.75, margin_pct: 75 },
      { unit: "completion per 1M", price_usd: 2, cost_usd: 1, margin_usd: 1, margin_pct: 50 }
    ])
    assert.deepStrictEqual(
      routes.map(({ id, loss, off_reason }: Record<string, unknown>) => [id, loss, off_reason]),
      [
        ["talk@first", false, null],
        ["talk@second", true, null],
        ["talk@absent", false, "ABSENT_KEY is not set"]
      ]
    )
    assert.deepInclude(mute, { callable: false, reason: "set ABSENT_KEY", lowest_margin_pct: null, loss: false })
    assert.deepInclude(picture, { context_length: null, lowest_margin_pct: 25 })
    assert.deepStrictEqual(
      film.prices.map(({ price_usd, unit }: Record<string, unknown>) => [unit, price_usd]),
      [
        ["4 s clip", 0.4],
        ["8 s clip", 0.8]
      ]
    )
    assert.deepStrictEqual(read(yield* admin("/models/mute")), mute)
    assertRefused(yield* admin("/models/none"), refusals.notFound("There is no model none."))
  })

  it.effect("a route of a model that is in no catalog is listed apart", function* () {
    const { admin } = yield* begin("read")
    const sql = yield* SqlClient.SqlClient
    yield* sql`INSERT INTO route_controls (route, disabled_at) VALUES ('gone@first', now()), ('slow@gone', now())`
    const { data, other_routes } = read(yield* admin("/models"))
    const idsOf = (routes: ReadonlyArray<{ readonly id: string }>) => routes.map(({ id }) => id)
    assert.deepStrictEqual(idsOf(other_routes), ["gone@first"])
    const slow = data.find(({ id }: { id: string }) => id === "slow")
    assert.deepStrictEqual(idsOf(slow.routes), ["slow@first", "slow@gone"])
    yield* sql`DELETE FROM route_controls`
  })

  it.effect("members see the models that they can call, at their prices, and nothing else", function* () {
    const { url } = yield* Served.ServedGateway
    const { org } = yield* openAccount({})
    yield* Effect.orDie((yield* Organizations).update(org, { discount_percent: 10 }))
    const member = yield* hire("write", org)
    const admin = adminAt(url, member.token)
    const { data, ...rest } = read(yield* admin("/models"))
    assert.deepStrictEqual(rest, { has_more: false, next: null })
    assert.deepStrictEqual(
      data.map(({ id }: { id: string }) => id),
      ["talk", "slow", "picture", "film"]
    )
    const [talk, , picture] = data
    assert.deepStrictEqual(Object.keys(talk).toSorted(), ["capabilities", "context_length", "id", "prices", "surface"])
    assert.deepStrictEqual(talk.prices.slice(0, 2), [
      { unit: "prompt per 1M", price_usd: 0.9 },
      { unit: "completion per 1M", price_usd: 1.8 }
    ])
    assert.deepStrictEqual(picture, {
      id: "picture",
      surface: "image",
      context_length: null,
      capabilities: [],
      prices: [{ unit: "1K image", price_usd: 0.036 }]
    })
    const shown = yield* admin("/models/talk")
    assert.deepStrictEqual(read(shown), talk)
    assert.notMatch(shown.text, /cost|margin|route|provider|first|second/)
    assertRefused(yield* admin("/models/mute"), refusals.notFound("There is no model mute."))
    const { status } = yield* admin("/models/talk/test", { method: "POST" })
    assert.strictEqual(status, 404)
  })

  it.effect("a test shows the answer with its cost, charges nobody, and is audited once for each key", function* () {
    const { audited, first, test } = yield* begin()
    const sql = yield* SqlClient.SqlClient
    yield* first.script(answers("OK"))
    const headers = { "idempotency-key": randomUUID() }
    const answer = yield* test("talk", undefined, headers)
    const { attempts, latency_ms, ...result } = read(answer)
    assert.deepStrictEqual(result, {
      model: "talk",
      ok: true,
      route: "talk@first",
      text: "OK",
      image_size: null,
      error: null,
      prompt_tokens: 10,
      completion_tokens: 5,
      cost_usd: 0.00001
    })
    assert.isNumber(latency_ms)
    assert.lengthOf(attempts, 1)
    assert.deepInclude(attempts[0], { route: "talk@first", provider: "first", outcome: "ok", status: 200 })
    const message = { role: "user", content: "Reply with the word OK." }
    assert.deepNestedInclude(first.calls.at(-1)?.body, { messages: [message] })
    const { length } = first.calls
    const repeated = yield* test("talk", undefined, headers)
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated), read(answer))
    assert.lengthOf(first.calls, length)
    const [row, ...others] = yield* audited
    assert.isEmpty(others)
    assert.deepInclude(row, { target: "talk", org: null, before: null, after: read(answer) })
    assert.deepStrictEqual(yield* sql`SELECT 1 FROM request_log UNION ALL SELECT 1 FROM holds`, [])
  })

  it.effect("a test of one route calls no other, and shows why it failed", function* () {
    const { admin, audited, first, second, test } = yield* begin()
    const { length } = first.calls
    yield* second.script(json(401, { error: { message: "Incorrect API key." } }))
    const failed = read(yield* test("talk", { route: "talk@second" }))
    assert.deepInclude(failed, { ok: false, route: null, text: null, cost_usd: null })
    assert.match(failed.error, /^account: 401 .*Incorrect API key\./)
    assert.deepStrictEqual(
      failed.attempts.map(({ outcome, route, status }: Record<string, unknown>) => [route, outcome, status]),
      [["talk@second", "account", 401]]
    )
    const skipped = read(yield* test("talk", { route: "talk@second" }))
    assert.match(skipped.error, /^No route was called/)
    assert.deepInclude(skipped.attempts[0], { outcome: "skipped" })
    assert.lengthOf(first.calls, length)
    assert.lengthOf(yield* audited, 2)
    const { routes } = read(yield* admin("/models/talk"))
    assert.lengthOf(routes, 3)
  })

  it.effect("an image is tested by its size, at no cost in the sandbox", function* () {
    const { test } = yield* begin()
    const tested = read(yield* test("picture", {}))
    assert.deepInclude(tested, { ok: true, route: "picture@drawer", text: null, cost_usd: 0 })
    assert.match(tested.image_size, /^\d+x\d+$/)
  })

  it.effect("what cannot be tested is refused, and not audited", function* () {
    const { admin, audited, test } = yield* begin()
    assertRefused(yield* test("none"), refusals.notFound("There is no model `none`."))
    assertRefused(yield* test("mute"), refusals.conflict("`mute` cannot be called: set ABSENT_KEY."))
    const blocked = "talk@absent cannot be called: ABSENT_KEY is not set."
    assertRefused(yield* test("talk", { route: "talk@absent" }), refusals.conflict(blocked, "route"))
    const unknown = "`talk` has no route slow@first. Its routes: talk@first, talk@second, talk@absent."
    assertRefused(yield* test("talk", { route: "slow@first" }), badRequest(unknown, "route"))
    assertRefused(yield* test("talk", { route: 1 }), badRequest("`route` must be a route's id.", "route"))
    const video = "Video models cannot be tested here. Create a short video with `POST /v1/videos`."
    assertRefused(yield* test("film"), badRequest(video))
    assert.isEmpty(yield* audited)
    const reader = yield* begin("read")
    assertRefused(yield* reader.test("talk"), refusals.needs("write"))
    read(yield* admin("/models/talk"))
  })

  it.effect("only two run at a time", function* () {
    const { first, test } = yield* begin()
    const { length } = first.calls
    const held = yield* Effect.forEach([1, 2], () => holdJson(first.script, completion("OK", usual)))
    const running = yield* Effect.fork(Effect.all([test("slow"), test("slow")], { concurrency: "unbounded" }))
    yield* soon(Effect.suspend(() => (first.calls.length === length + 2 ? Effect.void : Effect.fail("not asked yet"))))
    const busy = "2 tests are running. Try again when one has finished."
    assertRefused(yield* test("slow"), refusals.conflict(busy))
    yield* Effect.forEach(held, ({ release }) => release)
    for (const answer of yield* Fiber.join(running)) assert.isTrue(read(answer).ok)
  })

  it.effect(
    "a test whose client leaves is cancelled and audited, because the provider may charge for it",
    function* () {
      const { url } = yield* Served.ServedGateway
      const { audited, first, operator } = yield* begin()
      const { length } = first.calls
      const held = yield* holdJson(first.script, completion("OK", usual))
      const controller = new AbortController()
      const ended = fetch(`${url}/admin/v1/models/slow/test`, {
        method: "POST",
        headers: bearer(operator.token),
        signal: controller.signal
      }).catch(() => "aborted")
      yield* soon(Effect.suspend(() => (first.calls.length > length ? Effect.void : Effect.fail("not called yet"))))
      controller.abort()
      assert.strictEqual(yield* Effect.promise(() => ended), "aborted")
      const hasResult = Effect.map(audited, ([row]) => row?.after !== null && row?.after !== undefined)
      yield* soon(Effect.flatMap(hasResult, (has) => (has ? Effect.void : Effect.fail("no result yet"))))
      const [row] = yield* audited
      assert.deepInclude(row?.after, { model: "slow", ok: false, error: "The test was cancelled.", cost_usd: null })
      yield* held.release
    }
  )

  it.effect("a refused account is an alert that names the variable of the credential", function* () {
    const { admin } = yield* begin("read")
    const refused = { outcome: "account", status: 401, detail: "401 bad key", ms: 5 }
    const attempts = [
      { route: "talk@absent", provider: "absent", ...refused },
      // A new catalog has removed this route.
      { route: "talk@removed", provider: "removed", ...refused },
      { route: "talk@second", provider: "second", outcome: "ok", status: 200, ms: 5 }
    ]
    yield* logRequest({ model: "talk", route: "talk@second", provider: "second", attempts })
    const { attention } = read(yield* admin("/now"))
    assert.deepInclude(attention, {
      kind: "route_failing",
      title: "Every attempt of talk@absent fails",
      detail: "1 attempt within 15 minutes failed with 401 authentication failed: bad key. Check ABSENT_KEY.",
      href: "#/models/talk"
    })
    assert.notInclude(JSON.stringify(attention), "talk@removed")
  })

  it.effect("two concurrent tests with the same idempotency key call the provider once", function* () {
    const { audited, first, test } = yield* begin()
    const { length } = first.calls
    const held = yield* holdJson(first.script, completion("OK", usual))
    const headers = { "idempotency-key": randomUUID() }
    const running = yield* Effect.fork(
      Effect.all([test("slow", undefined, headers), test("slow", undefined, headers)], { concurrency: "unbounded" })
    )
    yield* soon(Effect.suspend(() => (first.calls.length > length ? Effect.void : Effect.fail("not called yet"))))
    yield* settled
    yield* held.release
    const [one, other] = yield* Fiber.join(running)
    assert.deepStrictEqual(read(one), read(other))
    const replays = [one, other].filter(({ headers }) => headers.get("idempotency-replayed") === "true")
    assert.lengthOf(replays, 1)
    assert.lengthOf(first.calls, length + 1)
    assert.lengthOf(yield* audited, 1)
  })
})
