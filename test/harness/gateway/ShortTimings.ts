/**
 * Short timings for gateways of tests, for the option `timings` of `Deployment.gateway` and `ServedGateway.layer`.
 * Operators cannot set timings.
 */

import { Duration, Record, Schema } from "effect"
import { productionTimings, type TimingValues } from "../../../src/services/runtime/Timings.ts"

/** Timings that differ from those of production. */
export type ShortTimings = Partial<TimingValues>

/** A busy machine may stall a process for this long, and no test may fail because of it. */
export const maxStall = Duration.seconds(5)

/**
 * For tests that wait until another gateway releases the holds of a dead one. That takes at most 16 seconds instead of
 * 50.
 */
export const earlyDeath = {
  heartbeatEvery: Duration.seconds(2),
  silentAfter: Duration.seconds(6),
  stopAfter: Duration.seconds(8),
  deadAfter: Duration.seconds(15),
  sweepEvery: Duration.seconds(1),
  settleWithin: Duration.seconds(5),
  abortWithin: Duration.seconds(6)
} satisfies ShortTimings

/**
 * For tests that wait until another gateway continues the videos of a dead one. That takes at most 9 seconds instead of
 * 30.
 */
export const earlyTakeover = {
  videoLease: Duration.seconds(8),
  renewVideoLeaseEvery: Duration.seconds(2),
  findVideosEvery: Duration.seconds(1),
  pollVideoAfter: Duration.seconds(1)
} satisfies ShortTimings

/** For tests that wait for a video of a fast provider. A test that reads the video before it is completed has one second. */
export const earlyPolls = { pollVideoAfter: Duration.seconds(1) } satisfies ShortTimings

/** For tests whose provider delays the response to a submit. */
export const earlyAnswers = { answerVideoWithin: Duration.seconds(2) } satisfies ShortTimings

export const complete = (short: ShortTimings): TimingValues => ({ ...productionTimings, ...short })

const Given = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.DurationFromMillis }))

/** Encodes timings for the environment of a process. */
export const encode = (short: ShortTimings): string => Schema.encodeSync(Given)(short)

/** Decodes timings. Fails for an unknown name. */
export const decode = (text: string): TimingValues => {
  const given = Schema.decodeSync(Given)(text)
  const unknown = Object.keys(given).filter((name) => !(name in productionTimings))
  if (unknown.length > 0) throw new Error(`no timings: ${unknown.join(", ")}`)
  return Record.map({ ...productionTimings }, (usual, name) => given[name] ?? usual)
}
