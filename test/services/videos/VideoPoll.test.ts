import { Array as Arr, Effect, Random } from "effect"
import type { VideoModel } from "../../../src/domain/Model.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { productionTimings } from "../../../src/services/runtime/Timings.ts"
import { makePollDelay } from "../../../src/services/videos/VideoState.ts"
import {
  busy,
  done,
  failed,
  failure,
  model,
  rendering,
  route,
  type Script,
  unanswered,
  waiting
} from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { assertDelivered, assertFailed, submitsOnly, type VideoBench, videoTest } from "./VideoBench.ts"

const broken = failed(failure("retry", 500))

/** A job of the bench's model, or of another, with what its routes do. */
const following = Effect.fnUntraced(function* (
  bench: VideoBench,
  scripts: Readonly<Record<string, Script>>,
  sold?: VideoModel
) {
  for (const id in scripts) bench.provider.on(id, scripts[id] ?? {})
  const { videos } = yield* bench.process(sold === undefined ? {} : { model: sold })
  const job = bench.job()
  return yield* videos.create(sold === undefined ? job : { ...job, model: sold })
})

describe("the delays between two polls of a render", () => {
  it.effect("grow from 2 s to 10 s with jitter", () =>
    Effect.gen(function* () {
      const pollDelay = makePollDelay(productionTimings.pollVideoAfter)
      for (const [asked, seconds] of [
        [0, 2],
        [1, 2],
        [2, 2],
        [3, 2.6],
        [4, 3.38],
        [8, 9.653_618],
        [9, 10],
        [1_000, 10]
      ] as const) {
        const rests = yield* Effect.forEach(Arr.range(1, 200), () => Effect.map(pollDelay(asked), (one) => one.afterMs))
        assert.isAtLeast(Math.min(...rests), seconds * 900 - 1)
        assert.isAtMost(Math.max(...rests), seconds * 1_100 + 1)
        assert.isAbove(Math.max(...rests) - Math.min(...rests), seconds * 100)
      }
    }).pipe(Effect.withRandom(Random.make("rests")))
  )
})

describe.concurrent("a video that is being rendered", () => {
  videoTest("moves from queued to in_progress and never back", function* (bench) {
    const seen: Array<string> = []
    const looking = Effect.orDie(Effect.map(bench.row, ({ polls, status }) => seen.push(`${status} ${polls}`)))
    const poll = [waiting, waiting, rendering, waiting, unanswered, rendering, done].map((answer) =>
      Effect.zipRight(looking, answer)
    )
    yield* following(bench, { "m@a": { poll } })
    yield* assertDelivered(bench)
    assert.deepStrictEqual(seen, [
      "queued 0",
      "queued 1",
      "queued 2",
      "in_progress 3",
      "in_progress 4",
      "in_progress 5",
      "in_progress 6"
    ])
  })

  videoTest("is polled some time after its submit, and less often after many polls", function* (bench) {
    const { process, provider, sql } = bench
    provider.on("m@a", { poll: [rendering] })
    const creator = yield* process(submitsOnly)
    yield* creator.videos.create(bench.job())
    const rest = (polls: number, since: string) =>
      Effect.map(
        sql<{ readonly s: number }>`
          SELECT extract(epoch FROM next_at - ${sql.literal(since)})::float8 AS s FROM videos
          WHERE polls = ${polls} AND (polls = 0 OR lease IS NULL)`,
        ([row]) => row
      )
    const first = yield* eventually(rest(0, "created_at"), (row) => (row?.s ?? 0) > 0)
    assert.isAtLeast(first?.s ?? 0, 1.8)
    yield* creator.stop
    yield* sql`UPDATE videos SET polls = 30, next_at = now()`
    yield* sql`CREATE TABLE looked (at timestamptz)`
    const looked = Effect.orDie(sql`INSERT INTO looked VALUES (clock_timestamp())`)
    provider.on("m@a", { poll: [Effect.zipRight(looked, rendering)] })
    yield* process()
    const second = yield* eventually(rest(31, "(SELECT max(at) FROM looked)"), (row) => row !== undefined)
    assert.isAtLeast(second?.s ?? 0, 8.9)
    assert.deepStrictEqual(provider.calls("poll"), ["m@a"])
  })

  videoTest("is not failed by polls that fail in any way", function* (bench) {
    const failures: ReadonlyArray<ProviderFailure> = [
      unanswered,
      failure("timeout"),
      busy,
      failure("limit", 429),
      failure("account", 401),
      failure("retry", 404),
      failure("request", 400),
      failure("moderation", 400)
    ]
    yield* following(bench, { "m@a": { poll: [...failures, Effect.die("a bug"), done] } })
    const { polls } = yield* assertDelivered(bench)
    assert.strictEqual(polls, failures.length + 1)
    assert.deepStrictEqual(bench.provider.calls("submit"), ["m@a"])
  })

  videoTest("is rendered by one further route when the render fails", function* (bench) {
    yield* following(bench, { "m@a": { poll: [rendering, broken] } })
    assert.deepInclude(yield* assertDelivered(bench), {
      attemptedRoutes: ["m@a", "m@b"],
      uncertainSubmits: 0,
      handle: "m@b 2"
    })
    assert.deepStrictEqual(bench.provider.calls(), [
      "submit m@a",
      "poll m@a",
      "poll m@a",
      "submit m@b",
      "poll m@b",
      "download m@b"
    ])
  })

  videoTest("shows how each attempt ended, and which one failed last", function* (bench) {
    const lost = failed(failure("retry", 500, { detail: "out of memory\u0000" }))
    const { video } = yield* following(bench, {
      "m@a": { poll: [rendering, lost] },
      "m@b": { poll: [failed(failure("moderation", 422))] }
    })
    yield* assertFailed(bench, "content_policy_violation")
    const job = yield* bench.desk.find(OrganizationScope.all, video.id)
    assert.deepStrictEqual(
      job.attempts.map(({ detail, outcome, route, status }) => [route, outcome, status, detail]),
      [
        ["m@a", "retry", 500, "out of memory?"],
        ["m@b", "moderation", 422, "moderation of the fake"]
      ]
    )
    for (const { ms } of job.attempts) assert.isTrue(Number.isInteger(ms) && ms >= 0, String(ms))
    assert.deepStrictEqual(job.error, {
      code: "content_policy_violation",
      message: "Content was rejected by the moderation system.",
      attempt: 2,
      outcome: "moderation"
    })
  })

  videoTest("shows the last poll's error and the attempt's duration at its deadline", function* (bench) {
    const { sql, until } = bench
    const { video } = yield* following(bench, { "m@a": { poll: [rendering, failure("account", 401), busy] } })
    yield* until(({ polls }) => polls >= 3)
    yield* sql`UPDATE videos SET deadline = now(), rendering_since = rendering_since - interval '1 hour'`
    yield* assertFailed(bench, "timeout")
    const job = yield* bench.desk.find(OrganizationScope.all, video.id)
    const [attempt, ...others] = job.attempts
    assert.isEmpty(others)
    assert.deepInclude(attempt, {
      route: "m@a",
      outcome: "timeout",
      detail: `the render did not finish before its deadline; last error: ${busy.detail}`
    })
    assert.notProperty(attempt, "status")
    assert.isAtLeast(attempt?.ms ?? 0, 3_600_000)
    assert.deepInclude(job.error, { code: "timeout", attempt: 1, outcome: "timeout" })
  })

  videoTest("forgets what a poll failed with once another one succeeds", function* (bench) {
    const { video } = yield* following(bench, { "m@a": { poll: [busy, rendering] } })
    yield* bench.until(({ polls }) => polls >= 2)
    assert.isNull((yield* bench.desk.find(OrganizationScope.all, video.id)).last_error)
    yield* bench.desk.cancel(OrganizationScope.all, video.id)
    const job = yield* bench.desk.find(OrganizationScope.all, video.id)
    assert.deepStrictEqual(
      job.attempts.map(({ outcome, route }) => [route, outcome]),
      [["m@a", "cancelled"]]
    )
  })

  const one = model(route("a"))
  for (const [what, scripts, code, submits, sold] of [
    ["twice", { "m@a": { poll: [broken] }, "m@b": { poll: [broken] } }, "upstream_error", ["m@a", "m@b"], undefined],
    [
      "and the next route is busy",
      { "m@a": { poll: [broken] }, "m@b": { submit: [busy] } },
      "upstream_error",
      ["m@a", "m@b"],
      undefined
    ],
    ["and there is no other route", { "m@a": { poll: [broken] } }, "upstream_error", ["m@a"], one],
    [
      "by the request's fault",
      { "m@a": { poll: [failed(failure("request", 422))] } },
      "upstream_error",
      ["m@a"],
      undefined
    ],
    [
      "by moderation",
      { "m@a": { poll: [failed(failure("moderation", 422))] } },
      "content_policy_violation",
      ["m@a"],
      undefined
    ],
    [
      "after a doubt",
      { "m@a": { submit: [unanswered] }, "m@b": { poll: [broken] } },
      "upstream_error",
      ["m@a", "m@b"],
      undefined
    ]
  ] as const) {
    videoTest(`is failed when its render fails ${what}`, function* (bench) {
      const { video } = yield* following(bench, scripts, sold)
      assert.deepInclude(yield* assertFailed(bench, code), { id: video.id, accepted: true })
      assert.deepStrictEqual(bench.provider.calls("submit"), submits)
    })
  }

  for (const [what, poll] of [
    ["renders for ever", rendering],
    ["knows nothing of it any more", failure("retry", 404)],
    ["never answers", Effect.delay(unanswered, "20 millis")]
  ] as const) {
    for (const [told, cancel] of [
      ["and accepts it", Effect.void],
      ["and refuses it", failure("retry", 500)],
      ["and fails by a defect", Effect.die("a bug")]
    ] as const) {
      videoTest(
        `is failed at its deadline by a provider that ${what}, which gets one cancellation ${told}`,
        function* (bench) {
          const { org, process, provider, sql, until } = bench
          yield* following(bench, { "m@a": { poll: [poll], cancel: [cancel] } })
          yield* until(({ polls }) => polls >= 3)
          yield* sql`UPDATE videos SET deadline = now()`
          const { id, polls } = yield* assertFailed(bench, "timeout")
          assert.isAtLeast(polls, 3)
          assert.deepStrictEqual([provider.calls("cancel"), provider.calls("submit")], [["m@a"], ["m@a"]])
          const { videos } = yield* process()
          assert.deepInclude(yield* videos.find(org, id), {
            status: "failed",
            error: { code: "timeout", message: "The request exceeded the allowed time." }
          })
        }
      )
    }
  }
})
