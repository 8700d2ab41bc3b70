import { Effect, Fiber } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { isUncertain } from "../../../src/services/videos/VideoUpstream.ts"
import { busy, failure, garbage, refused, unanswered } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { assert, describe, it } from "../../harness/It.ts"
import {
  assertDelivered,
  assertFailed,
  makeGate,
  price,
  submitsOnly,
  type VideoBench,
  videoTest
} from "./VideoBench.ts"

const slow = failure("timeout")
const routes = ["m@a", "m@b", "m@c"]

const submitting = ({ provider }: VideoBench, ...outcomes: ReadonlyArray<Effect.Effect<void, ProviderFailure>>) =>
  outcomes.forEach((outcome, index) => provider.on(routes[index] ?? "", { submit: [outcome] }))

describe("a failed submit", () => {
  for (const [what, given, expected] of [
    ["no answer", unanswered, true],
    ["no answer in time", slow, true],
    ["an answer cut after its head", failure("network", 200), true],
    ["a 2xx that is garbage", garbage, true],
    ["a redirect", failure("retry", 303), true],
    ["no socket", refused, false],
    ["a socket not in time", failure("timeout", undefined, { isUnsent: true }), false],
    ["an adapter's own refusal", failure("request"), false],
    ["429", failure("limit", 429), false],
    ["a limit inside a 200", failure("limit", 200), false],
    ["no funds inside a 200", failure("account", 200), false],
    ["500", failure("retry", 500), false],
    ["502", failure("retry", 502), true],
    ["504", failure("retry", 504), true],
    ["504 for want of funds", failure("account", 504), false],
    ["503", busy, false],
    ["moderation inside a 200", failure("moderation", 200), false]
  ] as const) {
    it(`with ${what} ${expected ? "may" : "cannot"} have arrived`, () =>
      assert.strictEqual(isUncertain(given), expected))
  }
})

describe.concurrent("submitting a video", () => {
  for (const [what, outcomes, asked, doubts] of [
    ["goes on to the next route after 503", [busy], ["m@a", "m@b"], 0],
    ["goes on to any further route after refused connections", [refused, refused], routes, 0],
    ["goes on to one further route after no answer", [unanswered], ["m@a", "m@b"], 1],
    ["goes on to one further route after no answer in time", [slow], ["m@a", "m@b"], 1],
    ["goes on to one further route after garbage", [garbage], ["m@a", "m@b"], 1],
    ["goes on to one further route after 503 and then no answer", [busy, unanswered], routes, 1]
  ] as const) {
    videoTest(what, function* (bench) {
      const { job, process, provider, row } = bench
      const { stop, videos } = yield* process(submitsOnly)
      submitting(bench, ...outcomes)
      yield* videos.create(job())
      assert.deepInclude(yield* row, {
        step: "rendering",
        attemptedRoutes: asked,
        uncertainSubmits: doubts,
        mayRetryRoute: doubts === 0
      })
      yield* stop
      yield* process()
      yield* assertDelivered(bench)
      assert.deepStrictEqual(provider.calls("submit"), asked)
    })
  }

  for (const [what, outcomes, tag, code, doubts, asked] of [
    ["no answer twice", [unanswered, unanswered], "AllProvidersFailed", "upstream_error", 2, 2],
    ["no answer in time twice", [slow, slow], "TimedOut", "timeout", 2, 2],
    ["no answer, then 503", [unanswered, busy], "AllProvidersFailed", "upstream_error", 1, 2],
    ["no answer, then no socket", [garbage, refused], "AllProvidersFailed", "upstream_error", 1, 2],
    ["503 twice, then no answer", [busy, busy, unanswered], "AllProvidersFailed", "upstream_error", 1, 3]
  ] as const) {
    videoTest(`ends at no charge after ${what}`, function* (bench) {
      const { job, process, provider } = bench
      const { videos } = yield* process()
      submitting(bench, ...outcomes)
      assert.strictEqual((yield* Effect.flip(videos.create(job())))._tag, tag)
      assert.deepInclude(yield* assertFailed(bench, code), { uncertainSubmits: doubts, accepted: false })
      assert.deepStrictEqual(provider.calls("submit"), routes.slice(0, asked))
    })
  }

  videoTest("is written to the row before each route gets its request", function* (bench) {
    const { job, process, row } = bench
    const { videos } = yield* process()
    const seen: Array<unknown> = []
    const look = Effect.orDie(
      Effect.map(row, ({ attemptedRoutes, mayRetryRoute, route, step, uncertainSubmits }) => {
        const { id } = JSON.parse(route ?? "{}")
        seen.push([step, id, attemptedRoutes, uncertainSubmits, mayRetryRoute])
      })
    )
    submitting(bench, Effect.zipRight(look, unanswered), look)
    yield* videos.create(job())
    assert.deepStrictEqual(seen, [
      ["submitting", "m@a", ["m@a"], 0, true],
      ["submitting", "m@b", ["m@a", "m@b"], 1, false]
    ])
    yield* assertDelivered(bench)
  })

  const stuck = Effect.fnUntraced(function* (
    { process, provider, job }: VideoBench,
    first = "m@a",
    end: Effect.Effect<void, ProviderFailure> = Effect.void
  ) {
    const dying = yield* process({ lookEvery: "1 hour" })
    const { open, reached, wait } = yield* makeGate
    provider.on(first, { submit: [Effect.zipRight(wait, end)] })
    const creating = yield* Effect.forkScoped(dying.videos.create(job()))
    yield* reached
    return { open, creating }
  })

  videoTest("is never repeated by a new owner, which tries one further route", function* (bench) {
    const { lapse, process, provider } = bench
    const { creating, open } = yield* stuck(bench)
    yield* lapse
    yield* process()
    const { id, ...delivered } = yield* assertDelivered(bench)
    assert.deepInclude(delivered, { uncertainSubmits: 1, attemptedRoutes: ["m@a", "m@b"], mayRetryRoute: false })
    assert.deepStrictEqual(
      (yield* bench.desk.find(OrganizationScope.all, id)).attempts.map(({ outcome, route }) => [route, outcome]),
      [
        ["m@a", "network"],
        ["m@b", "ok"]
      ]
    )
    // The first owner was only slow: what it has submitted is of no use to anybody.
    yield* open
    yield* eventually(
      Effect.sync(() => provider.calls("cancel")),
      (calls) => calls.length > 0
    )
    yield* Fiber.join(creating)
    assert.deepStrictEqual([provider.calls("submit"), provider.calls("cancel")], [["m@a", "m@b"], ["m@a"]])
    yield* bench.charged(price)
  })

  videoTest("fails the listed job when the first owner and the next one fail", function* (bench) {
    const { lapse, process, provider } = bench
    const { creating, open } = yield* stuck(bench, "m@a", failure("request", 422))
    provider.on("m@b", { submit: [busy] })
    yield* lapse
    yield* process()
    const { id } = yield* assertFailed(bench, "upstream_error")
    yield* open
    assert.deepInclude((yield* Fiber.join(creating)).video, { id, status: "queued" })
  })

  videoTest("ends when a new owner finds it under way after an earlier doubt", function* (bench) {
    const { lapse, process, provider } = bench
    submitting(bench, unanswered)
    yield* stuck(bench, "m@b")
    yield* lapse
    yield* process()
    assert.deepInclude(yield* assertFailed(bench, "upstream_error"), { uncertainSubmits: 2, accepted: true })
    assert.deepStrictEqual(provider.calls("submit"), ["m@a", "m@b"])
  })

  videoTest("ends with a doubt when a new owner finds it under way after its deadline", function* (bench) {
    const { lapse, process, provider, sql } = bench
    yield* stuck(bench)
    yield* sql`UPDATE videos SET deadline = now()`
    yield* lapse
    yield* process()
    assert.deepInclude(yield* assertFailed(bench, "timeout"), { uncertainSubmits: 1 })
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
  })

  videoTest("survives anything that a provider writes into its errors", function* (bench) {
    const { desk, job, process } = bench
    const { videos } = yield* process()
    const detail = `a NUL \u0000, half a pair \ud83d and ${"more ".repeat(100)}`
    submitting(bench, failure("retry", 500, { detail }))
    const { video } = yield* videos.create(job({ prompt: "a \u0000 cat \udc00" }))
    yield* assertDelivered(bench)
    const { attempts } = yield* desk.find(OrganizationScope.all, video.id)
    assert.deepStrictEqual(
      attempts.map(({ outcome, route }) => [route, outcome]),
      [
        ["m@a", "retry"],
        ["m@b", "ok"]
      ]
    )
    assert.match(attempts[0]?.detail ?? "", /^a NUL \?, half a pair \? and more/)
  })
})
