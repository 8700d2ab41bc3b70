import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { fetchFailed } from "../../fakes/FetcherFake.ts"
import { failed, failure, rendering } from "../../fakes/VideoProviderFake.ts"
import { eventually } from "../../harness/database/Money.ts"
import { assert, describe } from "../../harness/It.ts"
import { assertDelivered, assertFailed, price, submitsOnly, type VideoBench, videoTest } from "./VideoBench.ts"

const hook = "https://hooks.example/video"

const Rows = Schema.Array(
  Schema.Struct({
    type: Schema.String,
    url: Schema.String,
    endpointId: Schema.NullOr(Schema.String),
    data: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
)

const written = ({ sql }: VideoBench) =>
  Effect.flatMap(
    sql`SELECT type, url, endpoint_id, data FROM webhook_deliveries ORDER BY id`,
    Schema.decodeUnknown(Rows)
  )

const endpoint = ({ org, sql }: VideoBench) =>
  sql`INSERT INTO webhook_endpoints (id, org_id, url, secret) VALUES ('whe_1', ${org}, 'https://own.example/', 'whsec_')`

describe.concurrent("the webhooks of a video", () => {
  videoTest("are written when it completes, for its own URL and for each endpoint", function* (bench) {
    const { bench: accounts, job, org, process, sql } = bench
    yield* endpoint(bench)
    const other = yield* accounts.organization(0n)
    yield* sql`INSERT INTO webhook_endpoints (id, org_id, url, secret) VALUES ('whe_2', ${other.org}, ${hook}, 's')`
    yield* sql`INSERT INTO webhook_endpoints (id, org_id, url, secret, disabled_at)
      VALUES ('whe_3', ${org}, ${hook}, 's', now())`
    const { videos } = yield* process()
    const { video } = yield* videos.create(job({ webhookUrl: "HTTPS://hooks.example/a/../video" }))
    const { media } = yield* assertDelivered(bench)
    const url = `http://media.test/${media}`
    const { completedAt, createdAt } = yield* videos.find(org, video.id)
    const data = {
      id: video.id,
      object: "video",
      model: "m",
      status: "completed",
      progress: 100,
      created_at: createdAt,
      completed_at: completedAt,
      seconds: 8,
      charge_usd: 0.8,
      url,
      data: [{ url }]
    }
    assert.sameDeepMembers(
      [...(yield* written(bench))],
      [
        { type: "video.completed", url: "https://own.example/", endpointId: "whe_1", data },
        { type: "video.completed", url: hook, endpointId: null, data }
      ]
    )
    assert.lengthOf(yield* sql`SELECT secret FROM webhook_secrets WHERE org_id = ${org}`, 1)
  })

  videoTest("are written when it fails or is cancelled, with the error", function* (bench) {
    const { desk, job, process, provider } = bench
    const { videos } = yield* process()
    provider.on("m@a", { poll: [failed(failure("moderation", 400))] })
    yield* videos.create(job({ webhookUrl: hook }))
    yield* assertFailed(bench, "content_policy_violation")
    provider.on("m@a", { poll: [rendering] })
    const { video } = yield* videos.create(job({ webhookUrl: hook }))
    yield* desk.cancel(OrganizationScope.all, video.id)
    const [first, second, ...others] = yield* written(bench)
    assert.deepStrictEqual(others, [])
    assert.deepInclude(first, { type: "video.failed", url: hook })
    assert.deepInclude(first?.data, {
      status: "failed",
      error: { code: "content_policy_violation", message: "Content was rejected by the moderation system." }
    })
    assert.deepInclude(second?.data, {
      id: video.id,
      error: { code: "internal_error", message: "The video was cancelled by the operator." }
    })
  })

  videoTest("are not written for a video whose creation failed", function* (bench) {
    const { job, process, provider } = bench
    yield* endpoint(bench)
    provider.on("m@a", { submit: [failure("moderation", 400)] })
    const { videos } = yield* process()
    yield* Effect.flip(videos.create(job({ webhookUrl: hook })))
    yield* assertFailed(bench, "content_policy_violation")
    assert.deepStrictEqual(yield* written(bench), [])
  })

  videoTest("are written with its end and its charge, or not at all", function* (bench) {
    const { hurry, job, money, process, row, sql } = bench
    const creator = yield* process(submitsOnly)
    yield* creator.videos.create(job({ webhookUrl: hook }))
    yield* creator.stop
    yield* sql`CREATE SEQUENCE refusals`
    yield* sql.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM nextval('refusals'); RAISE EXCEPTION 'not now'; END $$`)
    yield* sql.unsafe(
      `CREATE TRIGGER refusing BEFORE INSERT ON webhook_deliveries FOR EACH ROW EXECUTE FUNCTION refuse()`
    )
    yield* process()
    yield* hurry
    const refusals = sql<{ readonly n: string }>`SELECT last_value::text AS n FROM refusals`
    yield* eventually(refusals, ([seen]) => Number(seen?.n) >= 3)
    assert.deepInclude(yield* row, { step: "rendering", media: null })
    assert.deepInclude(yield* money, { held: price, charges: [] })
    yield* sql`DROP TRIGGER refusing ON webhook_deliveries`
    yield* assertDelivered(bench)
    assert.lengthOf(yield* written(bench), 1)
  })

  videoTest("are refused where the URL is, before a hold, and belong to the idempotency key", function* (bench) {
    const { fetcher, job, process, provider, rows } = bench
    const { videos } = yield* process(submitsOnly)
    fetcher.on("http://10.0.0.1/", Effect.fail(fetchFailed("refused")))
    const refused = yield* Effect.flip(videos.create(job({ webhookUrl: "http://10.0.0.1/", key: "k" })))
    assert.deepInclude(refused, { _tag: "InvalidRequest", param: "webhook_url" })
    assert.deepStrictEqual([yield* rows, provider.calls()], [[], []])
    const { video } = yield* videos.create(job({ webhookUrl: hook, key: "k" }))
    assert.deepStrictEqual(yield* videos.create(job({ webhookUrl: hook, key: "k" })), { video, replayed: true })
    for (const webhookUrl of [undefined, `${hook}/other`]) {
      const other = yield* Effect.flip(videos.create(job({ webhookUrl, key: "k" })))
      assert.deepInclude(other, { _tag: "InvalidRequest", param: null })
    }
  })
})
