import { SqlClient } from "@effect/sql"
import { Context, Deferred, Duration, Effect, Exit, Layer, Logger, LogLevel, Redacted, Schema, Scope } from "effect"
import { Database } from "../../../src/database/Database.ts"
import type { VideoModel } from "../../../src/domain/Model.ts"
import { VideoAdmin } from "../../../src/services/admin/VideoAdmin.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { type RequestTrace, type SpanSource, Tracing } from "../../../src/services/tracing/Tracing.ts"
import type { VideoTask } from "../../../src/services/videos/VideoCreation.ts"
import { VideoJobs } from "../../../src/services/videos/VideoJobs.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import { FetcherFake } from "../../fakes/FetcherFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import * as Fake from "../../fakes/VideoProviderFake.ts"
import { assertCharged, eventually, moneyOf } from "../../harness/database/Money.ts"
import * as MoneyProcess from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import { complete, type ShortTimings } from "../../harness/gateway/ShortTimings.ts"
import { assert, it } from "../../harness/It.ts"

export const credits = 100_000_000_000n
/** Of eight seconds. */
export const price = 800_000_000n

export interface ProcessOptions {
  readonly model?: VideoModel
  /** Instead of the bench's own database: through a door, say. */
  readonly url?: string
  readonly timeout?: Duration.DurationInput
  readonly lookEvery?: Duration.DurationInput
  readonly timings?: ShortTimings
  readonly reach?: (name: FailpointName) => Effect.Effect<void>
  readonly provider?: Fake.VideoProviderFake
  readonly spans?: SpanSource
}

/** A process that submits, and then asks after nothing, however long a test takes. */
export const submitsOnly: ProcessOptions = {
  lookEvery: "1 hour",
  reach: (name) => (name === "video_polling" ? Effect.never : Effect.void)
}

/** As much of a job as tests look at. */
const Row = Schema.Struct({
  id: Schema.String,
  status: Schema.String,
  step: Schema.String,
  errorCode: Schema.NullOr(Schema.String),
  media: Schema.NullOr(Schema.String),
  reference: Schema.NullOr(Schema.String),
  accepted: Schema.Boolean,
  route: Schema.NullOr(Schema.String),
  handle: Schema.NullOr(Schema.String),
  attemptedRoutes: Schema.Array(Schema.String),
  mayRetryRoute: Schema.Boolean,
  uncertainSubmits: Schema.Number,
  polls: Schema.Number,
  downloads: Schema.Number,
  cancelling: Schema.Boolean,
  lease: Schema.NullOr(Schema.String),
  idle: Schema.Boolean
})
const decodeRows = Schema.decodeUnknown(Schema.Array(Row))

const catalogOf = (sold: VideoModel) =>
  Layer.mock(Catalog, {
    current: {
      models: [sold],
      find: (id) => (id === sold.id ? sold : undefined),
      findAt: (id) => (id === sold.id ? sold : undefined),
      findId: (id) => (id === sold.id ? sold : undefined),
      discounts: new Set<number>(),
      changes: [],
      saleStates: [],
      offModels: [],
      sandbox: false,
      providers: [],
      fingerprint: ""
    },
    accounts: sold.routes.map(({ provider }) => provider)
  })

const make = Effect.gen(function* () {
  const url = yield* Postgres.freshUrl
  const observer = Layer.mergeAll(MoneyProcess.bench, VideoAdmin.layer).pipe(
    Layer.provideMerge(LedgerAdmin.layer),
    Layer.provideMerge(Layer.orDie(Database.layerUrl(Redacted.make(url))))
  )
  const outside = yield* Layer.build(observer)
  const sql = Context.get(outside, SqlClient.SqlClient)
  const ids = yield* Ids
  const provider = new Fake.VideoProviderFake()
  const store = new MediaStoreFake()
  const fetcher = new FetcherFake()
  const sold = Fake.model(Fake.route("a"), Fake.route("b"), Fake.route("c"))
  const { key, org } = yield* Context.get(outside, LedgerBench).organization(credits)

  /** A process of the gateway as far as videos go; it looks for work much more often than one at rest. */
  const process = Effect.fnUntraced(function* (options: ProcessOptions = {}) {
    const { lookEvery = "50 millis", model = sold, reach, spans, timeout = "30 minutes" } = options
    const timings = complete({ findVideosEvery: Duration.decode(lookEvery), ...options.timings })
    const base = Layer.mergeAll(
      MoneyProcess.process.pipe(Layer.provideMerge(Layer.orDie(Database.layerUrl(Redacted.make(options.url ?? url))))),
      ProviderRouter.layer().pipe(Layer.provide((options.provider ?? provider).layer)),
      ReferenceImages.layer.pipe(Layer.provideMerge(Layer.merge(fetcher.layer, store.layer))),
      catalogOf(model),
      Layer.succeed(Timings, timings),
      reach === undefined ? Layer.empty : Layer.succeed(Failpoint, { reach }),
      Layer.succeed(Tracing, { source: spans })
    )
    const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
    const memo = yield* Layer.makeMemoMap
    const layer = VideoJobs.layer({ timeout }).pipe(Layer.provideMerge(base))
    const context = yield* Layer.buildWithMemoMap(layer, memo, scope)
    return {
      videos: Context.get(context, VideoJobs),
      instance: Context.get(context, Instance),
      inFlight: Context.get(context, InFlight),
      stop: Scope.close(scope, Exit.void)
    }
  })

  const job = (
    more: Partial<VideoTask["params"]> & { readonly model?: string; readonly key?: string } = {},
    trace?: RequestTrace
  ): VideoTask => {
    const { key: idempotencyKey, ...params } = more
    const record = new RequestRecord({
      id: ids.uuid(),
      requestId: "req_1",
      surface: "video",
      caller: { key, org, scopes: undefined, rpm: undefined },
      tag: "blue",
      rateLimit: 600,
      at: 0,
      startedAt: 0,
      trace
    })
    return {
      model: sold,
      seconds: 8,
      params: { model: "m", prompt: "a cat", seconds: undefined, references: [], webhookUrl: undefined, ...params },
      idempotencyKey,
      record
    }
  }

  const rows = Effect.flatMap(
    sql`SELECT *, accepted_at IS NOT NULL AS accepted, next_at IS NULL AS idle FROM videos ORDER BY created_at, id`,
    decodeRows
  )
  const row = Effect.map(rows, (all) => {
    const [first] = all
    if (first === undefined || all.length > 1) throw new Error(`${all.length} videos`)
    return first
  })
  /** Nobody rests any longer. */
  const hurry = sql`UPDATE videos SET next_at = now() WHERE next_at > now()`
  /** Waits for what is to become of the only job, whose rests are cut short. */
  const until = (isSo: (seen: typeof Row.Type) => boolean) => eventually(Effect.zipRight(hurry, row), isSo)
  const over = until(({ idle, step }) => step === "over" && idle)

  return {
    url,
    sql,
    org,
    key,
    outside,
    provider,
    store,
    fetcher,
    model: sold,
    process,
    job,
    rows,
    row,
    hurry,
    until,
    over,
    desk: Context.get(outside, VideoAdmin),
    bench: Context.get(outside, LedgerBench),
    money: Effect.provide(moneyOf(org), outside),
    /** Asserts what was charged, that nothing is held, and that all books balance. */
    charged: (...charges: ReadonlyArray<bigint>) => Effect.provide(assertCharged(org, charges, credits), outside),
    /** As if the holder of a lease had been silent for long. */
    lapse: sql`UPDATE videos SET lease_until = now() - interval '1 second' WHERE lease IS NOT NULL`,
    /** As if somebody else had all jobs, who does nothing. */
    steal: sql`UPDATE videos SET lease = gen_random_uuid(), lease_until = now() + interval '1 hour'`
  }
})

export type VideoBench = Effect.Effect.Success<typeof make>

/** Runs a test over a database of its own, quietly. */
export const withBench = <A, E>(test: (bench: VideoBench) => Effect.Effect<A, E, Scope.Scope>) =>
  Effect.flatMap(make, test).pipe(Effect.scoped, Logger.withMinimumLogLevel(LogLevel.None))

/** A test over a database of its own, in real time. */
export const videoTest = (
  title: string,
  body: (bench: VideoBench) => Effect.fn.Return<unknown, unknown, Scope.Scope>
) => it.live(title, () => withBench(Effect.fnUntraced(body)))

/** For a call that says when it has come, and waits until it may go on, or the test ends. */
export const makeGate = Effect.gen(function* () {
  const here = yield* Deferred.make<void>()
  const gate = yield* Deferred.make<void>()
  const open = Deferred.succeed(gate, undefined)
  yield* Effect.addFinalizer(() => open)
  const wait = Effect.zipRight(Deferred.succeed(here, undefined), Deferred.await(gate))
  return { reached: Deferred.await(here), wait, open }
})

/** A reference image as requests bring it. */
export const picture = { _tag: "Bytes", bytes: png } as const

/** They go once everybody can see that the job is over. */
const referencesGone = (store: MediaStoreFake) =>
  eventually(
    Effect.sync(() => store.names.private),
    (names) => names.length === 0
  )

/** Everything that is to be so once a clip was delivered and charged for. */
export const assertDelivered = Effect.fnUntraced(function* ({ charged, over, store }: VideoBench) {
  const row = yield* over
  assert.deepStrictEqual([row.status, row.errorCode], ["completed", null])
  yield* referencesGone(store)
  assert.deepStrictEqual(store.names.public, [row.media ?? ""])
  yield* charged(price)
  return row
})

/** Everything that is to be so once a job has failed, whoever was told of it. */
export const assertFailed = Effect.fnUntraced(function* ({ charged, over, store }: VideoBench, code: string) {
  const row = yield* over
  assert.deepStrictEqual([row.status, row.errorCode, row.media], ["failed", code, null])
  yield* referencesGone(store)
  assert.deepStrictEqual(store.names.public, [])
  yield* charged()
  return row
})
