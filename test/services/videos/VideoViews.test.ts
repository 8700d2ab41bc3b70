import { Duration, Effect, Schema, Struct } from "effect"
import { productionTimings } from "../../../src/services/runtime/Timings.ts"
import { VideoSql } from "../../../src/services/videos/VideoSql.ts"
import { page } from "../../../src/services/videos/VideoViews.ts"
import { failed, failure, rendering } from "../../fakes/VideoProviderFake.ts"
import { eventually, violatedBy } from "../../harness/database/Money.ts"
import { assert, describe } from "../../harness/It.ts"
import { credits, picture, price, submitsOnly, type VideoBench, videoTest } from "./VideoBench.ts"

/** Finished jobs of an organization, a second apart. */
const fill = (bench: VideoBench, count: number, { key, org }: Pick<VideoBench, "key" | "org"> = bench) =>
  bench.sql`
    WITH made AS (
      INSERT INTO holds (id, org_id, key_id, amount, state, closed_at)
      SELECT gen_random_uuid(), ${org}, ${key}, 0, 'released', now() FROM generate_series(1, ${count}) RETURNING id
    )
    INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at, deadline,
      accepted_at, status, step, completed_at, error_code, error_message, next_at)
    SELECT 'vid_' || id, ${org}, ${key}, id, 'r', 'm', 8, 0, '', now() - row_number() OVER () * interval '1 second', now(),
      now(), 'failed', 'over', now(), 'timeout', 'late', NULL
    FROM made`

const Explained = Schema.Array(Schema.Record({ key: Schema.String, value: Schema.String }))

describe.concurrent("the videos of an organization", () => {
  videoTest("are listed newest first, in a stable order and apart from those of others", function* (bench) {
    const { job, org, process, sql } = bench
    const { videos } = yield* process({ lookEvery: "1 hour" })
    const other = yield* bench.bench.organization(0n)
    yield* fill(bench, 30)
    yield* fill(bench, 5, other)
    // Of the same moment, like those that come at once.
    yield* sql`UPDATE videos SET created_at = date_trunc('day', now()) WHERE org_id = ${org} AND random() < 0.5`
    const expected = yield* sql<{ readonly id: string }>`
      SELECT id FROM videos WHERE org_id = ${org} ORDER BY created_at DESC, id DESC`
    const listed = yield* videos.list(org, 100)
    assert.deepStrictEqual(listed.map(Struct.get("id")), expected.map(Struct.get("id")))
    assert.deepStrictEqual(yield* videos.list(org, 7), listed.slice(0, 7))
    const { video } = yield* videos.create(job())
    assert.deepStrictEqual(
      (yield* videos.list(org, 8)).map(({ id }) => id),
      [video.id, ...listed.slice(0, 7).map(({ id }) => id)]
    )
    const theirs = yield* videos.list(other.org, 100)
    assert.lengthOf(theirs, 5)
    assert.isFalse(theirs.some(({ id }) => listed.some((one) => one.id === id)))
    assert.strictEqual((yield* Effect.flip(videos.find(other.org, video.id)))._tag, "VideoNotFound")
    assert.strictEqual((yield* videos.find(org, video.id)).id, video.id)
  })

  videoTest("are read by an index, as the next due one is", function* (bench) {
    const { job, org, process, sql } = bench
    const creator = yield* process(submitsOnly)
    yield* fill(bench, 20_000, yield* bench.bench.organization(0n))
    yield* fill(bench, 20_000)
    const { id: after } = (yield* creator.videos.create(job())).video
    yield* creator.stop
    yield* sql`ANALYZE videos`
    const rows = new VideoSql(sql, productionTimings.videoLease)
    const planOf = (statement: string, values: ReadonlyArray<unknown>) =>
      sql.unsafe(`EXPLAIN ${statement}`, values).pipe(
        Effect.flatMap(Schema.decodeUnknown(Explained)),
        Effect.map((lines) => lines.flatMap(Object.values).join("\n"))
      )
    for (const start of [undefined, { order: "desc", after }, { order: "asc", after }] as const) {
      const plan = yield* planOf(...page(sql, org, 100, start).compile())
      assert.match(plan, /Index Only Scan( Backward)? using videos_listed/)
      assert.strictEqual(/Index Cond: .*ROW\(created_at, id\)/.test(plan), start !== undefined, plan)
      assert.notMatch(plan, /Seq Scan/)
    }
    yield* bench.hurry
    const [claimed] = yield* rows.claim(16)
    if (claimed === undefined) return assert.fail("nothing was due")
    const scans = sql<{ readonly n: number }>`
      SELECT coalesce(sum(seq_tup_read), 0)::int AS n FROM pg_stat_xact_user_tables WHERE relname = 'videos'`
    const read = yield* Effect.gen(function* () {
      yield* rows.renew([claimed])
      yield* rows.nextDue([])
      yield* rows.release(claimed, 0)
      yield* rows.claim(16)
      return yield* scans
    }).pipe(sql.withTransaction)
    assert.deepStrictEqual(read, [{ n: 0 }])
  })

  videoTest("are deleted some time after their end, and their references earlier", function* (bench) {
    const { charged, job, org, over, process, sql, store } = bench
    const { videos } = yield* process()
    yield* videos.create(job({ references: [picture] }))
    const { id: first, media } = yield* over
    yield* sql`ALTER TABLE videos DISABLE TRIGGER videos_finished_once`
    yield* fill(bench, 6_000)
    yield* sql`UPDATE videos SET completed_at = now() - interval '91 days' WHERE media IS NULL`
    const [young] = yield* sql<{ readonly id: string }>`
      UPDATE videos SET completed_at = now() - interval '89 days'
      WHERE id = (SELECT min(id) FROM videos WHERE media IS NULL) RETURNING id`
    // A job that its process left without dropping what it needs no more.
    yield* sql`UPDATE videos SET reference = 'private/x' WHERE id = (SELECT max(id) FROM videos WHERE media IS NULL)`
    const { video } = yield* videos.create(job())
    yield* sql`UPDATE videos SET created_at = now() - interval '100 days' WHERE id = ${video.id}`
    assert.strictEqual(yield* videos.prune(Duration.days(90)), 5_999)
    assert.sameMembers((yield* videos.list(org, 10)).map(Struct.get("id")), [first, young?.id ?? "", video.id])
    yield* sql`UPDATE videos SET completed_at = now() - interval '91 days' WHERE id = ${first}`
    assert.strictEqual(yield* videos.prune(Duration.days(90)), 1)
    assert.deepStrictEqual(yield* sql`SELECT id FROM videos WHERE reference IS NOT NULL`, [])
    assert.isTrue(store.files.has(media ?? ""))
    yield* eventually(Effect.zipRight(bench.hurry, bench.rows), (rows) => rows.every(({ step }) => step === "over"))
    yield* charged(price, price)
  })
})

const open = "an unfinished video has an open hold of its price without an instance"
const charged = "a completed video was charged its price"
const free = "a failed video was charged nothing"
const own = "a video's hold belongs to its organization and key"
const orphan = "an open hold without an instance belongs to an unfinished video"
const sums = "the held amount is the sum of the organization's open holds"

describe.concurrent("the verification of the ledger", () => {
  videoTest(
    "finds a video whose charge is wrong",
    function* ({ bench, hurry, job, money, outside, process, provider, rows, sql }) {
      const { videos } = yield* process()
      const routes = ["m@a", "m@b"]
      const make = (prompt: string) => Effect.map(videos.create(job({ prompt })), ({ video }) => video.id)
      const isOver = (id: string) =>
        Effect.repeat(Effect.zipRight(hurry, rows), {
          until: (all) => all.some((one) => one.id === id && one.step === "over")
        })
      const completed = yield* make("done")
      yield* isOver(completed)
      routes.forEach((route) => provider.on(route, { poll: [failed(failure("moderation", 400))] }))
      const rejected = yield* make("refused")
      yield* isOver(rejected)
      provider.on("m@a", { poll: [rendering] })
      const unfinished = yield* make("under way")
      assert.deepStrictEqual(yield* money, {
        balance: credits - price,
        held: price,
        entries: credits - price,
        charges: [price],
        openHolds: 1
      })
      assert.isTrue(yield* bench.proved)

      const other = yield* bench.organization(0n)
      const hold = (id: string) => sql`(SELECT hold_id FROM videos WHERE id = ${id})`
      const tampering = [
        [[sums, open], sql`UPDATE holds SET state = 'released', closed_at = now() WHERE id = ${hold(unfinished)}`],
        [[open], sql`UPDATE videos SET price = price + 1 WHERE id = ${unfinished}`],
        [[open], sql`UPDATE holds SET instance_id = gen_random_uuid() WHERE id = ${hold(unfinished)}`],
        [[open, orphan], sql`UPDATE videos SET hold_id = gen_random_uuid() WHERE id = ${unfinished}`],
        [[charged], sql`UPDATE videos SET price = price - 1 WHERE id = ${completed}`],
        [
          [charged, free],
          sql`WITH swapped AS (SELECT id, hold_id FROM videos WHERE id IN (${completed}, ${rejected}))
          UPDATE videos SET hold_id = swapped.hold_id FROM swapped
          WHERE videos.id IN (${completed}, ${rejected}) AND swapped.id <> videos.id`
        ],
        [
          [charged, orphan],
          sql`UPDATE videos SET status = 'completed', step = 'over', completed_at = now(), media = 'm'
          WHERE id = ${unfinished}`
        ],
        [
          [free, orphan],
          sql`UPDATE videos SET status = 'failed', step = 'over', completed_at = now(), error_code = 'c'
          WHERE id = ${unfinished}`
        ],
        [[orphan], sql`DELETE FROM videos WHERE id = ${unfinished}`],
        [[own], sql`UPDATE videos SET org_id = ${other.org} WHERE id = ${completed}`],
        [[own], sql`UPDATE videos SET key_id = ${other.key} WHERE id = ${rejected}`]
      ] as const
      for (const [breaks, by] of tampering) {
        const dropped = sql`ALTER TABLE videos DROP CONSTRAINT videos_hold_id_key`
        const found = Effect.provide(violatedBy(Effect.zipRight(dropped, by)), outside)
        assert.deepStrictEqual<unknown>(yield* found, breaks)
      }
      assert.isTrue(yield* bench.proved)
    }
  )
})
