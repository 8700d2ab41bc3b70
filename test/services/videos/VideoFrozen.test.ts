import { Effect, Either, Redacted, Schema } from "effect"
import type { VideoRoute } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { encodeRoute, FrozenRoute, restoreRoute, StoredRoute } from "../../../src/services/videos/VideoState.ts"
import { account, busy, failed, model, rendering, route } from "../../fakes/VideoProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { assertDelivered, assertFailed, price, submitsOnly, type VideoBench, videoTest } from "./VideoBench.ts"

const secret = "sk-upstream-secret"

const full: VideoRoute = route("a", {
  provider: {
    ...account("a"),
    baseUrl: "https://a.test/v1",
    credential: Redacted.make(secret),
    headers: { "x-key": secret }
  },
  options: {
    snake_case: { inner_key: [1, "two", null, { deep_er: true }] },
    camelCase: 1,
    "with space": "é\u0000\ud83d"
  },
  imageModel: undefined,
  referenceImage: "none",
  seconds: [5, 8],
  secondsAs: "suffixed",
  cost: { per: "second", price: NanoUsd(9_007_199_254_740_993n) }
})

const read = Schema.decodeUnknownSync(Schema.parseJson(FrozenRoute))

describe("a route stored in a row", () => {
  for (const [what, given] of [
    ["everything said", full],
    ["little said", route("b")],
    ["a price of the whole", route("c", { cost: { per: "video", price: NanoUsd(1n) } })]
  ] as const) {
    it(`with ${what} comes back as it was, under its account of today`, () => {
      const today = { ...given.provider, credential: Redacted.make("another"), headers: { "x-new": "1" } }
      const { preference: _, weight: __, ...same } = given
      assert.deepStrictEqual(restoreRoute(read(encodeRoute(given)), [account("z"), today]), {
        ...same,
        provider: today,
        preference: 1,
        weight: 1
      })
    })
  }

  it("has neither a credential nor a header", () => {
    assert.notInclude(encodeRoute(full), secret)
    assert.notInclude(encodeRoute(full), "x-key")
  })

  it("is unusable when its account has another name, address or adapter", () => {
    const frozen = read(encodeRoute(full))
    const { provider } = full
    for (const other of [
      [],
      [{ ...provider, name: "b" }],
      [{ ...provider, baseUrl: "https://a.test/v2" }],
      [{ ...provider, baseUrl: undefined }],
      [{ ...provider, adapter: "other" }]
    ]) {
      assert.isUndefined(restoreRoute(frozen, other))
    }
  })

  it("is unusable when another version wrote it", () => {
    const kept = Schema.decodeUnknownEither(StoredRoute)
    for (const text of [null, "", "{", "[]", '{"id":"m@a"}', encodeRoute(full).replace("suffixed", "roman")]) {
      assert.deepStrictEqual(kept(text), Either.right(null))
    }
    assert.deepStrictEqual(kept(encodeRoute(full)), Either.right(read(encodeRoute(full))))
  })
})

/** A job that was begun with these routes by a process that is gone. */
const begun = Effect.fnUntraced(function* (bench: VideoBench, ...routes: ReadonlyArray<VideoRoute>) {
  const sold = model(...routes)
  const first = yield* bench.process({ ...submitsOnly, model: sold })
  yield* first.videos.create({ ...bench.job(), model: sold })
  yield* first.stop
  return sold
})

describe.concurrent("a video whose catalog changes meanwhile", () => {
  videoTest("keeps its price, its length and its route", function* (bench) {
    const { process, provider, sql } = bench
    const sold = yield* begun(bench, full, route("b"))
    const [kept] = yield* sql<{ readonly text: string }>`SELECT videos::text AS text FROM videos`
    assert.include(kept?.text ?? "", "snake_case")
    assert.notInclude(kept?.text ?? "", secret)
    const rewritten = route("a", { provider: full.provider, model: "another", options: {}, seconds: [1] })
    yield* process({
      model: {
        ...model(rewritten),
        pricing: { per: "video", price: NanoUsd(1n) },
        seconds: { allowed: [1], default: 1 }
      }
    })
    yield* assertDelivered(bench)
    assert.strictEqual(sold.pricing.price * 8n, price)
    const { preference: _, weight: __, ...same } = full
    for (const { call, route } of provider.called) {
      if (call !== "submit") assert.deepStrictEqual({ ...same, preference: 1, weight: 1 }, route)
    }
    const [row] = yield* sql`SELECT seconds, price, cost FROM videos`
    assert.deepStrictEqual(row, { seconds: 8, price: String(price), cost: String(9_007_199_254_740_993n * 8n) })
  })

  videoTest("waits for a removed provider and is rendered when it is back", function* (bench) {
    const { hurry, process, provider, row } = bench
    yield* begun(bench, route("a"))
    const without = yield* process({ model: model(route("b")) })
    yield* Effect.repeatN(hurry, 60)
    assert.deepInclude(yield* row, { step: "rendering", status: "queued", attemptedRoutes: ["m@a"] })
    assert.deepStrictEqual(provider.calls(), ["submit m@a"])
    yield* without.stop
    yield* process({ model: model(route("b"), route("a")) })
    yield* assertDelivered(bench)
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
  })

  videoTest("waits for a removed provider until its deadline", function* (bench) {
    const { hurry, process, provider, row, sql } = bench
    provider.on("m@a", { poll: [rendering] })
    yield* begun(bench, route("a"))
    yield* process({ model: model(route("b")) })
    yield* Effect.repeatN(hurry, 20)
    assert.deepInclude(yield* row, { step: "rendering" })
    yield* sql`UPDATE videos SET deadline = now()`
    yield* assertFailed(bench, "timeout")
    assert.deepStrictEqual(provider.calls(), ["submit m@a"])
  })

  for (const [what, before] of [
    ["was not submitted yet", "step = 'submit', route = NULL, handle = NULL, attempted_routes = '{}'"],
    ["may have been submitted", "step = 'submitting', handle = NULL"],
    ["has failed at its provider", "may_retry_route = true"]
  ] as const) {
    videoTest(`that ${what} is left to an instance whose catalog has its model`, function* (bench) {
      const { hurry, process, provider, row, sql } = bench
      provider.on("m@a", { poll: [failed(busy)] })
      yield* begun(bench, route("a"), route("b"))
      yield* sql`UPDATE videos SET ${sql.literal(before)}`
      const { step } = yield* row
      yield* process({ model: { ...model(route("a"), route("b")), id: "other" } })
      yield* Effect.repeatN(hurry, 60)
      assert.deepInclude(yield* row, { step, uncertainSubmits: 0 })
      assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
      yield* process({ model: model(route("a"), route("b")) })
      yield* assertDelivered(bench)
    })
  }

  videoTest("is left to an instance whose catalog has its length", function* (bench) {
    const { hurry, process, row, sql } = bench
    yield* begun(bench, route("a"))
    yield* sql`UPDATE videos SET step = 'submit', route = NULL, handle = NULL, attempted_routes = '{}'`
    yield* process({ model: model(route("a", { seconds: [4] })) })
    yield* Effect.repeatN(hurry, 60)
    assert.deepInclude(yield* row, { step: "submit", status: "queued" })
    yield* process({ model: model(route("a")) })
    yield* assertDelivered(bench)
  })

  videoTest("fails with its last route, although that no longer has its length", function* (bench) {
    const { process, provider } = bench
    provider.on("m@a", { poll: [failed(busy)] })
    yield* begun(bench, route("a"))
    yield* process({ model: model(route("a", { seconds: [4] })) })
    yield* assertFailed(bench, "upstream_error")
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
  })

  videoTest("has the same values in the columns of this version and the previous one", function* (bench) {
    const { sql } = bench
    yield* begun(bench, route("a"))
    const columns = sql`
      SELECT attempted_routes = tried AND may_retry_route = spare AND uncertain_submits = doubts AS same,
        attempted_routes, may_retry_route, uncertain_submits FROM videos`.withoutTransform
    yield* sql`UPDATE videos SET tried = '{m@b}', spare = false, doubts = 3`
    assert.deepStrictEqual(yield* columns, [
      { same: true, attempted_routes: ["m@b"], may_retry_route: false, uncertain_submits: 3 }
    ])
    yield* sql`UPDATE videos SET attempted_routes = '{m@c}', may_retry_route = true, uncertain_submits = 4`
    assert.deepStrictEqual(yield* columns, [
      { same: true, attempted_routes: ["m@c"], may_retry_route: true, uncertain_submits: 4 }
    ])
  })

  videoTest("fails at its deadline where no catalog has its model", function* (bench) {
    const { hurry, process, provider, sql } = bench
    yield* begun(bench, route("a"))
    yield* sql`UPDATE videos SET step = 'submit', route = NULL, handle = NULL, attempted_routes = '{}'`
    yield* process({ model: { ...model(route("a")), id: "other" } })
    yield* Effect.repeatN(hurry, 20)
    yield* sql`UPDATE videos SET deadline = now()`
    yield* assertFailed(bench, "timeout")
    assert.deepStrictEqual(provider.calls(), ["submit m@a"])
  })

  videoTest("is claimed only once a minute by an instance that cannot continue it", function* (bench) {
    const { hurry, process, row, sql } = bench
    yield* begun(bench, route("a"))
    yield* process({ model: model(route("b")) })
    yield* Effect.repeatN(Effect.zipRight(hurry, Effect.sleep("20 millis")), 20)
    yield* sql`UPDATE videos SET lease = NULL, lease_until = NULL`
    yield* hurry
    yield* Effect.sleep("300 millis")
    assert.isNull((yield* row).lease)
  })

  videoTest("continues with the present routes that can render it", function* (bench) {
    const { process, provider, sql } = bench
    yield* begun(bench, route("a"))
    yield* sql`UPDATE videos SET step = 'submit', route = NULL, handle = NULL, attempted_routes = '{}'`
    yield* process({ model: model(route("a", { seconds: [4] }), route("b")) })
    yield* assertDelivered(bench)
    assert.deepStrictEqual(provider.calls("submit"), ["m@a", "m@b"])
  })
})
