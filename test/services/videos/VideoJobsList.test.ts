import { assert, describe } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { makeVideoSql } from "../../../src/services/videos/VideoSql.ts"
import { latest } from "../../../src/services/videos/VideoViews.ts"
import { eventually } from "../../harness/database/Money.ts"
import { price, submitsOnly, type VideoBench, videoTest } from "../../harness/database/VideoBench.ts"
import { png } from "../../harness/fixtures/TinyPictures.ts"

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

describe.concurrent("videos that are asked for again", () => {
  videoTest(
    "are listed newest first, in an order that new ones do not disturb, and apart from others'",
    function* (bench) {
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
      assert.deepStrictEqual(
        listed.map(({ id }) => id),
        expected.map(({ id }) => id)
      )
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
    }
  )

  videoTest("cost no look through all of them, and neither does the next thing to do", function* (bench) {
    const { job, org, process, sql } = bench
    const creator = yield* process(submitsOnly)
    yield* fill(bench, 20_000, yield* bench.bench.organization(0n))
    yield* fill(bench, 20_000)
    yield* creator.videos.create(job())
    yield* creator.stop
    yield* sql`ANALYZE videos`
    const rows = makeVideoSql(sql)
    const planOf = (statement: string, values: ReadonlyArray<unknown>) =>
      sql.unsafe(`EXPLAIN ${statement}`, values).pipe(
        Effect.flatMap(Schema.decodeUnknown(Explained)),
        Effect.map((lines) => lines.flatMap(Object.values).join("\n"))
      )
    const list = yield* planOf(...latest(sql, org, 100).compile())
    assert.match(list, /Index Only Scan using videos_org_created/)
    assert.notMatch(list, /Seq Scan/)
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

  videoTest("are forgotten after a time, once they are over, and their references before that", function* (bench) {
    const { charged, job, org, over, process, sql, store } = bench
    const { videos } = yield* process()
    yield* videos.create(job({ references: [{ _tag: "Bytes", bytes: png }] }))
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
    assert.sameMembers(
      (yield* videos.list(org, 10)).map(({ id }) => id),
      [first, young?.id ?? "", video.id]
    )
    yield* sql`UPDATE videos SET completed_at = now() - interval '91 days' WHERE id = ${first}`
    assert.strictEqual(yield* videos.prune(Duration.days(90)), 1)
    assert.deepStrictEqual(yield* sql`SELECT id FROM videos WHERE reference IS NOT NULL`, [])
    assert.isTrue(store.files.has(media ?? ""))
    yield* eventually(Effect.zipRight(bench.hurry, bench.rows), (rows) => rows.every(({ step }) => step === "over"))
    yield* charged(price, price)
  })
})
