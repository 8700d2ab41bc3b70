import { inspect } from "node:util"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Either, Fiber } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { unconfirmedSubmit } from "../../../src/services/videos/VideoSql.ts"
import { rendering } from "../../fakes/VideoProviderFake.ts"
import { eventually, lock, waitingForLock } from "../../harness/database/Money.ts"
import { assert, describe } from "../../harness/It.ts"
import {
  assertDelivered,
  assertFailed,
  makeGate,
  picture,
  price,
  submitsOnly,
  type VideoBench,
  videoTest
} from "./VideoBench.ts"

/** A video that a provider renders, and never finishes by itself. */
const renders = Effect.fnUntraced(function* (bench: VideoBench, more: Parameters<VideoBench["job"]>[0] = {}) {
  bench.provider.on("m@a", { poll: [rendering] })
  const process = yield* bench.process()
  const { video } = yield* process.videos.create(bench.job(more))
  return { ...process, id: video.id }
})

const told = ({ provider }: VideoBench, routes: ReadonlyArray<string>) =>
  eventually(
    Effect.sync(() => provider.calls("cancel")),
    (calls) => calls.length >= routes.length
  ).pipe(Effect.map((calls) => assert.deepStrictEqual(calls, routes)))

/** Waits until somebody waits for what is locked. */
const somebodyWaits = ({ outside }: VideoBench) =>
  Effect.provideService(
    waitingForLock("generation-gateway"),
    SqlClient.SqlClient,
    Context.get(outside, SqlClient.SqlClient)
  )

describe.concurrent("the video administration", () => {
  videoTest("lists the videos of all organizations, newest first and without prompts", function* (bench) {
    const { desk, job, org, over, process, sql } = bench
    const { videos } = yield* process()
    const { video: first } = yield* videos.create(job({ prompt: "a secret wish" }))
    yield* over
    bench.provider.on("m@a", { poll: [rendering] })
    const { video: second } = yield* videos.create(job({ prompt: "a secret wish", references: [picture] }))
    const other = yield* bench.bench.organization(0n)
    yield* sql`UPDATE videos SET created_at = now() - interval '1 minute' WHERE id = ${first.id}`
    const ids = (query: Parameters<typeof desk.list>[1]) =>
      Effect.map(desk.list(OrganizationScope.all, query), (jobs) => jobs.map(({ id }) => id))
    assert.deepStrictEqual(yield* ids({ limit: 100 }), [second.id, first.id])
    assert.deepStrictEqual(yield* ids({ limit: 1 }), [second.id])
    assert.deepStrictEqual(yield* ids({ limit: 100, org, model: "m" }), [second.id, first.id])
    assert.deepStrictEqual(yield* ids({ limit: 100, status: "completed" }), [first.id])
    assert.deepStrictEqual(yield* ids({ limit: 100, org: other.org }), [])
    assert.deepStrictEqual(yield* ids({ limit: 100, model: "other" }), [])
    const shown = yield* Effect.forEach([first.id, second.id], (id) => desk.find(OrganizationScope.all, id))
    assert.deepStrictEqual<unknown>(
      shown.map(({ charge_usd, price_usd, route, tried }) => [charge_usd, price_usd, route, tried]),
      [
        [price, price, "m@a", ["m@a"]],
        [null, price, "m@a", ["m@a"]]
      ]
    )
    for (const one of shown) {
      assert.notInclude(inspect(one, { depth: 9 }), "secret")
      assert.notProperty(one, "reference")
    }
    assert.strictEqual((yield* Effect.flip(desk.find(OrganizationScope.all, "vid_none")))._tag, "VideoNotFound")
  })

  videoTest("polls a video before its next poll is due", function* (bench) {
    const { desk, provider, row, sql } = bench
    const { id } = yield* renders(bench)
    yield* sql`UPDATE videos SET next_at = now() + interval '1 hour'`
    provider.on("m@a", {})
    yield* desk.retry(OrganizationScope.all, id)
    yield* eventually(row, ({ status }) => status === "completed")
    const over = yield* Effect.flip(desk.retry(OrganizationScope.all, id))
    assert.deepInclude(over, { _tag: "VideoAlreadyFinished", id, status: "completed" })
    assert.include(over.message, id)
    assert.strictEqual((yield* Effect.flip(desk.retry(OrganizationScope.all, "vid_none")))._tag, "VideoNotFound")
    yield* assertDelivered(bench)
  })

  videoTest("cancels a render, which fails at no charge and is cancelled once at its provider", function* (bench) {
    const { desk, job, org } = bench
    const { id, videos } = yield* renders(bench, { key: "k" })
    const cancelled = yield* desk.cancel(OrganizationScope.all, id)
    assert.deepInclude(cancelled, { id, status: "failed", charge_usd: null })
    assert.strictEqual(cancelled.error?.code, "internal_error")
    yield* told(bench, ["m@a"])
    yield* assertFailed(bench, "internal_error")
    assert.deepInclude(yield* videos.find(org, id), {
      error: { code: "internal_error", message: "The video was cancelled by the operator." }
    })
    assert.strictEqual((yield* Effect.flip(desk.cancel(OrganizationScope.all, id)))._tag, "VideoAlreadyFinished")
    assert.deepInclude(yield* videos.create(job({ key: "k" })), { replayed: true })
    assert.strictEqual((yield* Effect.flip(desk.cancel(OrganizationScope.all, "vid_none")))._tag, "VideoNotFound")
  })

  videoTest("cancels a render without ever showing it to its customer", function* (bench) {
    const { desk, job, org, process, sql } = bench
    const first = yield* process(submitsOnly)
    const { video } = yield* first.videos.create(job())
    yield* first.stop
    yield* sql`UPDATE videos SET accepted_at = NULL`
    yield* desk.cancel(OrganizationScope.all, video.id)
    const { videos } = yield* process()
    yield* told(bench, ["m@a"])
    assert.deepInclude(yield* assertFailed(bench, "internal_error"), { accepted: false })
    assert.deepStrictEqual(yield* videos.list(org, 100), [])
  })

  videoTest("cancels a submit under way and its render at the provider that may have taken it", function* (bench) {
    const { desk, job, process, provider, row, over } = bench
    const { videos } = yield* process()
    const { open, reached, wait } = yield* makeGate
    provider.on("m@a", { submit: [wait] })
    const creating = yield* Effect.fork(Effect.exit(videos.create(job({ key: "k" }))))
    yield* reached
    yield* desk.cancel(OrganizationScope.all, (yield* row).id)
    assert.deepInclude(yield* over, { status: "failed", accepted: false, uncertainSubmits: 1 })
    const { attempts } = yield* desk.find(OrganizationScope.all, (yield* row).id)
    assert.deepStrictEqual(attempts, [
      { route: "m@a", provider: "a", outcome: "cancelled", ms: 0, detail: unconfirmedSubmit.detail }
    ])
    yield* open
    assert.strictEqual((yield* Fiber.join(creating))._tag, "Failure")
    yield* told(bench, ["m@a"])
    yield* assertFailed(bench, "internal_error")
    assert.deepStrictEqual(provider.calls("submit"), ["m@a"])
  })

  videoTest("does not cancel a video that is being completed", function* (bench) {
    const { desk, org, outside, provider, row, store } = bench
    const { id } = yield* renders(bench)
    const { unlock } = yield* Effect.provide(lock(org), outside)
    provider.on("m@a", {})
    yield* desk.retry(OrganizationScope.all, id)
    yield* somebodyWaits(bench)
    assert.deepInclude(yield* row, { step: "rendering" })
    const cancelling = yield* Effect.fork(Effect.either(desk.cancel(OrganizationScope.all, id)))
    yield* unlock
    const answer = yield* Fiber.join(cancelling)
    assert.deepInclude(Either.merge(answer), { _tag: "VideoAlreadyFinished", status: "completed" })
    yield* assertDelivered(bench)
    assert.lengthOf(store.names.public, 1)
    assert.deepStrictEqual(provider.calls("cancel"), [])
  })

  videoTest("cancels a render before it completes, and removes its file", function* (bench) {
    const { desk, job, org, outside, process, store } = bench
    const stored = yield* makeGate
    const { videos } = yield* process({ reach: (name) => (name === "video_stored" ? stored.wait : Effect.void) })
    const { video } = yield* videos.create(job())
    yield* bench.hurry
    yield* stored.reached
    assert.lengthOf(store.names.public, 1)
    const { unlock } = yield* Effect.provide(lock(org), outside)
    const cancelling = yield* Effect.fork(desk.cancel(OrganizationScope.all, video.id))
    yield* somebodyWaits(bench)
    yield* stored.open
    yield* unlock
    assert.deepInclude(yield* Fiber.join(cancelling), { status: "failed", media: null })
    yield* eventually(
      Effect.sync(() => store.names.public.length),
      (files) => files === 0
    )
    yield* assertFailed(bench, "internal_error")
  })

  videoTest("ends each video once and with the right charge when it competes with completion", function* (bench) {
    const { charged, desk, hurry, job, process, rows, store } = bench
    const { videos } = yield* process()
    const made = yield* Effect.forEach(
      Array.from({ length: 16 }, (_, index) => String(index)),
      (prompt) => Effect.map(videos.create(job({ prompt })), ({ video }) => video.id),
      { concurrency: 8 }
    )
    yield* hurry
    const cancelled = yield* Effect.forEach(
      made,
      (id, index) => Effect.delay(Effect.either(desk.cancel(OrganizationScope.all, id)), index * 10),
      { concurrency: "unbounded" }
    )
    const all = yield* eventually(Effect.zipRight(hurry, rows), (seen) => seen.every(({ idle }) => idle))
    const outcome = new Map(all.map(({ id, status }) => [id, status]))
    for (const [index, answer] of cancelled.entries()) {
      const status = Either.isRight(answer) ? "failed" : "completed"
      assert.strictEqual(outcome.get(made[index] ?? ""), status)
    }
    const completed = all.filter(({ status }) => status === "completed")
    yield* eventually(
      Effect.sync(() => store.names.public.length),
      (files) => files === completed.length
    )
    yield* charged(...completed.map(() => price))
  })
})
