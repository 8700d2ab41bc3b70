import { Effect, Stream } from "effect"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { clip, done, failed, failure, type Script, unanswered } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
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

const reference = { type: "image/png" as const, bytes: png, width: 1, height: 1 }

const gone = Stream.fail(failure("network", 200))
const page = Stream.make(Buffer.from("<html>not a clip, however long it is</html>".repeat(200)))

const made = Effect.fnUntraced(function* (bench: VideoBench, scripts: Readonly<Record<string, Script>>) {
  for (const id in scripts) bench.provider.on(id, scripts[id] ?? {})
  const { videos } = yield* bench.process()
  return yield* videos.create(bench.job({ references: [picture] }))
})

describe.concurrent("the clip of a video", () => {
  videoTest("is stored whole from pieces of any size", function* (bench) {
    const whole = clip("x".repeat(20_000))
    const pieces = Array.from({ length: 4_006 }, (_, index) => whole.subarray(index * 5, index * 5 + 5))
    yield* made(bench, { "m@a": { download: [Stream.fromIterable([new Uint8Array(), ...pieces])] } })
    const { media } = yield* assertDelivered(bench)
    assert.isTrue(Buffer.from(whole).equals(bench.store.files.get(media ?? "") ?? new Uint8Array()))
  })

  for (const [what, download, downloads] of [
    ["that cannot be had is fetched again", [gone, gone, gone, gone, Stream.make(clip())], 4],
    ["that breaks off is fetched again", [Stream.concat(Stream.make(clip()), gone), Stream.make(clip("whole"))], 1]
  ] as const) {
    videoTest(what, function* (bench) {
      yield* made(bench, { "m@a": { download } })
      assert.deepInclude(yield* assertDelivered(bench), { downloads, attemptedRoutes: ["m@a"] })
      assert.strictEqual(bench.store.unfinished, 0)
    })
  }

  videoTest("is downloaded again after growing delays, since it is paid for", function* (bench) {
    yield* made(bench, { "m@a": { download: [page, gone, page, gone, Stream.make(clip())] } })
    const rests: Array<number> = []
    for (let failed = 1; failed < 5; failed++) {
      yield* eventually(bench.row, ({ downloads, lease }) => downloads === failed && lease === null)
      const [rest] = yield* bench.sql<{ readonly s: number }>`
        SELECT extract(epoch FROM next_at - now())::float8 AS s FROM videos`
      rests.push(rest?.s ?? 0)
      yield* bench.hurry
    }
    assert.deepInclude(yield* assertDelivered(bench), { downloads: 4, attemptedRoutes: ["m@a"] })
    const patience = rests.reduce((sum, rest) => sum + rest, 0)
    assert.isAbove(patience, 180)
  })

  for (const [what, download] of [
    ["cannot be had five times", gone],
    ["is no video", page],
    ["is empty", Stream.empty]
  ] as const) {
    videoTest(`that ${what} is rendered by one further route before the video fails`, function* (bench) {
      const { provider } = bench
      yield* made(bench, { "m@a": { download: [download] }, "m@b": { download: [download] } })
      yield* assertFailed(bench, "upstream_error")
      assert.deepStrictEqual(provider.calls("submit"), ["m@a", "m@b"])
      assert.lengthOf(provider.calls("download"), 10)
      // The reference went along both times.
      for (const { call, what: asked } of provider.called) {
        if (call === "submit") assert.deepInclude(asked, { reference })
      }
    })
  }

  for (const [kind, code] of [
    ["moderation", "content_policy_violation"],
    ["request", "upstream_error"]
  ] as const) {
    videoTest(`that its provider refuses fails the video: ${kind}`, function* (bench) {
      yield* made(bench, { "m@a": { download: [Stream.fail(failure(kind, 422))] } })
      yield* assertFailed(bench, code)
      assert.deepStrictEqual(bench.provider.calls(), ["submit m@a", "poll m@a", "download m@a"])
    })
  }

  videoTest("waits for an unavailable store without a second render", function* (bench) {
    const { store } = bench
    // The first is the reference.
    store.before(Effect.void, ...Array.from({ length: 8 }, () => MediaStoreFake.away))
    yield* made(bench, {})
    assert.deepInclude(yield* assertDelivered(bench), { downloads: 0, attemptedRoutes: ["m@a"] })
  })
})

describe.concurrent("the end of a video", () => {
  const refusing = ["videos", "holds", "ledger_entries", "key_spend", "organizations"] as const
  for (const table of refusing) {
    for (const end of ["completed", "failed"] as const) {
      if (end === "failed" && (table === "ledger_entries" || table === "key_spend")) continue
      videoTest(`is written as ${end} wholly or not at all when ${table} refuse`, function* (bench) {
        const { job, money, process, provider, row, sql, store } = bench
        const creator = yield* process(submitsOnly)
        yield* creator.videos.create(job({ key: "k", references: [picture] }))
        yield* creator.stop
        provider.on("m@a", { poll: [end === "completed" ? done : failed(failure("moderation", 400))] })
        const before = yield* money
        const when = table === "videos" ? "WHEN (NEW.step = 'over')" : ""
        yield* sql`CREATE SEQUENCE refusals`
        yield* sql.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'not now'; END $$`)
        yield* sql.unsafe(`CREATE TRIGGER refusing BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW ${when}
          EXECUTE FUNCTION refuse()`)
        yield* process()
        yield* bench.hurry
        const refusals = sql<{ readonly n: string }>`SELECT last_value::text AS n FROM refusals`
        yield* eventually(refusals, ([seen]) => Number(seen?.n) >= 3)
        assert.deepStrictEqual(yield* money, before)
        assert.deepInclude(yield* row, { step: "rendering", media: null, errorCode: null })
        assert.lengthOf(yield* sql`SELECT claim FROM idempotency_keys WHERE key = 'k'`, 1)
        assert.lengthOf(store.names.private, 1)
        yield* sql.unsafe(`DROP TRIGGER refusing ON ${table}`)
        yield* end === "completed" ? assertDelivered(bench) : assertFailed(bench, "content_policy_violation")
        assert.lengthOf(provider.calls("download"), end === "completed" ? 1 : 0)
      })
    }
  }

  /** An owner that has stored the clip, and then lost its lease to somebody else. */
  const overtaken = Effect.fnUntraced(function* (bench: VideoBench, second: Script) {
    const { process, provider, steal, store } = bench
    const stored = yield* makeGate
    // It finds no more work by itself until it is through with this.
    const slow = yield* process({
      lookEvery: "1 hour",
      reach: (name) => (name === "video_stored" ? stored.wait : Effect.void)
    })
    yield* slow.videos.create(bench.job({ references: [picture] }))
    yield* stored.reached
    const [first = ""] = store.names.public
    provider.on("m@a", second)
    yield* steal
    return { first, goOn: stored.open }
  })
  const publicFiles = ({ store }: VideoBench) => Effect.sync(() => store.names.public)

  videoTest("is decided by the first instance when the other comes later", function* (bench) {
    const { goOn, first } = yield* overtaken(bench, {})
    const other = yield* bench.process()
    yield* bench.lapse
    const row = yield* bench.over
    assert.notStrictEqual(row.media, first)
    assert.sameMembers([...bench.store.names.public], [first, row.media ?? ""])
    yield* goOn
    yield* eventually(publicFiles(bench), (names) => names.length === 1)
    yield* assertDelivered(bench)
    assert.deepInclude(yield* other.videos.find(bench.org, row.id), { url: `http://media.test/${row.media}` })
  })

  videoTest("is decided by the lease's holder when the other is first, and the reference stays", function* (bench) {
    const polling = yield* makeGate
    const poll = [Effect.zipRight(polling.wait, failed(failure("retry", 500)))]
    const { goOn } = yield* overtaken(bench, { poll })
    yield* bench.process()
    yield* bench.lapse
    yield* polling.reached
    yield* goOn
    yield* eventually(publicFiles(bench), (names) => names.length === 0)
    assert.deepInclude(yield* bench.row, { step: "rendering", media: null })
    assert.lengthOf(bench.store.names.private, 1)
    yield* polling.open
    assert.deepInclude(yield* assertDelivered(bench), { attemptedRoutes: ["m@a", "m@b"] })
    const submits = bench.provider.called.filter(({ call }) => call === "submit")
    assert.lengthOf(submits, 2)
    for (const { what } of submits) assert.deepInclude(what, { reference })
  })

  videoTest("is charged once even after a submit without an answer", function* (bench) {
    yield* made(bench, { "m@a": { submit: [unanswered] } })
    yield* assertDelivered(bench)
    yield* bench.charged(price)
  })
})
