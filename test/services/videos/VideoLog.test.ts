import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { refundFailed } from "../../../src/services/ledger/Refunds.ts"
import { type RequestEntry, rowOf } from "../../../src/services/requests/RequestEntry.ts"
import { entryOf, type RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import { countUsage } from "../../../src/services/telemetry/Usage.ts"
import { eventually } from "../../harness/database/Money.ts"
import { assert, describe } from "../../harness/It.ts"
import { assertDelivered, price, submitsOnly, type VideoBench, videoTest } from "./VideoBench.ts"

const rowAt9 = (record: RequestRecord): RequestEntry => entryOf(record.summary, { status: 202, code: null }, 9)

const rowOfJob = ({ sql }: VideoBench) => sql`
  SELECT request_id, status, surface, model, route, provider, charge, total_ms, end_user, tag, seconds
  FROM request_log`

const totals = ({ sql }: VideoBench) =>
  countUsage.pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.zipRight(sql`SELECT sum(requests)::int AS requests, sum(charge)::bigint AS charge,
      sum(seconds)::int AS seconds FROM usage_hours`)
  )

const row = {
  requestId: "req_1",
  status: 202,
  surface: "video",
  model: "m",
  route: "m@a",
  provider: "a",
  endUser: "ann",
  tag: "blue",
  seconds: "8"
}
const charge = String(price)

describe.concurrent("the row of a video", () => {
  videoTest("says what was charged once the job is over", function* (bench) {
    const { job, process, sql, until } = bench
    const { stop, videos } = yield* process(submitsOnly)
    const asked = job()
    asked.record.add({ type: "read", model: "m", endUser: "ann" })
    yield* videos.create(asked)
    yield* sql`INSERT INTO request_log SELECT * FROM json_populate_record(NULL::request_log, ${rowOf(rowAt9(asked.record))}::json)`
    assert.deepStrictEqual(yield* rowOfJob(bench), [{ ...row, charge: "0", seconds: null, totalMs: 9 }])
    yield* stop
    yield* process()
    yield* until(({ status }) => status === "completed")
    yield* assertDelivered(bench)
    assert.deepStrictEqual(yield* rowOfJob(bench), [{ ...row, charge, totalMs: 9 }])
    assert.deepStrictEqual(yield* totals(bench), [{ requests: 1, charge, seconds: 8 }])
  })

  videoTest("is made at the job's end where there is none, and what comes later leaves its charge", function* (bench) {
    const { job, process, sql, until } = bench
    const { videos } = yield* process()
    const asked = job()
    asked.record.add({ type: "read", model: "m", endUser: "ann" })
    yield* videos.create(asked)
    yield* until(({ status }) => status === "completed")
    assert.deepStrictEqual(yield* rowOfJob(bench), [{ ...row, charge, totalMs: 0 }])
    yield* assertDelivered(bench)
    const written = Effect.gen(function* () {
      const log = yield* RequestLog
      yield* log.write(rowAt9(asked.record))
      yield* eventually(rowOfJob(bench), ([found]) => found?.["totalMs"] === 9)
    })
    yield* Effect.provide(written, Layer.provide(RequestLog.layer, Layer.succeedContext(bench.outside)))
    assert.deepStrictEqual(yield* rowOfJob(bench), [{ ...row, charge, totalMs: 9 }])
    yield* assertDelivered(bench)

    yield* refundFailed(sql, asked.record.summary.hold ?? "")
    assert.deepStrictEqual(yield* rowOfJob(bench), [{ ...row, status: 500, charge: "0", seconds: null, totalMs: 9 }])
    assert.deepStrictEqual(yield* totals(bench), [{ requests: 1, charge: "0", seconds: 0 }])
    assert.isTrue(yield* bench.bench.proved)
  })
})
