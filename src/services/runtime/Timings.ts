import { Context, Duration } from "effect"

/** How often the gateway's background work runs, and for how long it waits. Settings of an operator are elsewhere. */
export interface TimingValues {
  /** An instance renews its heartbeat. Two in a row may fail before others call the instance silent. */
  readonly heartbeatEvery: Duration.Duration
  /** Since the last heartbeat: the instance no longer counts as a peer. More than two heartbeats. */
  readonly silentAfter: Duration.Duration
  /** Since the last heartbeat: the instance refuses requests and aborts those that run. At least `silentAfter`. */
  readonly stopAfter: Duration.Duration
  /**
   * Since the last heartbeat: others release the instance's holds. The instance must have finished what it aborts by
   * then, so this is longer than `stopAfter` and `abortWithin` together.
   */
  readonly deadAfter: Duration.Duration
  /** Every instance releases the holds of dead ones. With `deadAfter` below the promised 60 seconds. */
  readonly sweepEvery: Duration.Duration
  /** A settlement is retried for this long, then it fails. */
  readonly settleWithin: Duration.Duration
  /** A stop waits this long for aborted requests. Longer than `settleWithin`: their charges may be under way. */
  readonly abortWithin: Duration.Duration
  /** A video job belongs to its lease holder. Two renewals in a row may fail before the lease lapses. */
  readonly videoLease: Duration.Duration
  readonly renewVideoLeaseEvery: Duration.Duration
  /** Every instance polls for video jobs. With `videoLease` at most the promised 30 seconds. */
  readonly findVideosEvery: Duration.Duration
  /** A customer waits this long for a provider to take a video; then the submission continues in the background. */
  readonly answerVideoWithin: Duration.Duration
  /** The delay before a video is polled first at its provider; the delay grows fivefold. */
  readonly pollVideoAfter: Duration.Duration
  /** Every instance polls for webhooks to deliver. */
  readonly findDeliveriesEvery: Duration.Duration
  /** Every instance reads which organizations have webhook endpoints; charges of the others write no events. */
  readonly readEndpointsEvery: Duration.Duration
  /** Every instance reads the controls of operators: disabled routes, resets, reloads. Promised within 2 seconds. */
  readonly readControlsEvery: Duration.Duration
  /** Every instance publishes its circuits, for `gateway providers` and the console. */
  readonly publishHealthEvery: Duration.Duration
  /** Every instance checks whether it can write media. */
  readonly checkMediaEvery: Duration.Duration
}

/** The values of every gateway that is not a test's; docs/architecture.md and docs/operating promise them. */
export const productionTimings: TimingValues = {
  heartbeatEvery: Duration.seconds(5),
  silentAfter: Duration.seconds(15),
  stopAfter: Duration.seconds(20),
  deadAfter: Duration.seconds(45),
  sweepEvery: Duration.seconds(5),
  settleWithin: Duration.seconds(10),
  abortWithin: Duration.seconds(12),
  videoLease: Duration.seconds(25),
  renewVideoLeaseEvery: Duration.seconds(8),
  findVideosEvery: Duration.seconds(5),
  answerVideoWithin: Duration.seconds(10),
  pollVideoAfter: Duration.seconds(2),
  findDeliveriesEvery: Duration.seconds(1),
  readEndpointsEvery: Duration.seconds(1),
  readControlsEvery: Duration.seconds(1),
  publishHealthEvery: Duration.seconds(2),
  checkMediaEvery: Duration.seconds(5)
}

/** Read once, when a layer is built. Instances of one database must have the same values. */
export class Timings extends Context.Reference<Timings>()("gateway/Timings", {
  defaultValue: () => productionTimings
}) {}
