import { Context, Duration } from "effect"

/** How often background work runs, and how long waits last. Constant in production: operators cannot set them. */
export interface TimingValues {
  /** Each instance renews its heartbeat this often. If two renewals in a row fail, `silentAfter` has not passed yet. */
  readonly heartbeatEvery: Duration.Duration
  /** After this time without a heartbeat an instance is silent, and no longer a peer. More than two `heartbeatEvery`. */
  readonly silentAfter: Duration.Duration
  /** After this time without a heartbeat the instance refuses requests and aborts running ones. At least `silentAfter`. */
  readonly stopAfter: Duration.Duration
  /**
   * After this time without a heartbeat other instances release the instance's holds. By then it must have finished its
   * aborted requests, so this is longer than `stopAfter` and `abortWithin` together.
   */
  readonly deadAfter: Duration.Duration
  /**
   * Each instance releases the holds of dead ones this often. The docs promise 60 seconds, so the sum with `deadAfter` is
   * lower.
   */
  readonly sweepEvery: Duration.Duration
  /** A settlement is retried for this long, then it fails. */
  readonly settleWithin: Duration.Duration
  /** A stop waits this long for aborted requests. Longer than `settleWithin`, because they may be settling. */
  readonly abortWithin: Duration.Duration
  /**
   * The length of the lease by which an instance owns a video job. If two renewals in a row fail, it has not expired yet.
   */
  readonly videoLease: Duration.Duration
  readonly renewVideoLeaseEvery: Duration.Duration
  /**
   * Each instance queries the database for video jobs this often. The docs promise 30 seconds, so the sum with `videoLease`
   * is at most that.
   */
  readonly findVideosEvery: Duration.Duration
  /** A request waits this long for a provider to accept a video; then the submission continues in the background. */
  readonly answerVideoWithin: Duration.Duration
  /** The delay before a video's first poll at its provider. Later delays grow to five times this. */
  readonly pollVideoAfter: Duration.Duration
  /** Each instance queries the database for webhooks to deliver this often. */
  readonly findDeliveriesEvery: Duration.Duration
  /**
   * Each instance reads the operators' controls this often: disabled routes, resets, reloads. The docs promise 2 seconds.
   */
  readonly readControlsEvery: Duration.Duration
  /** Each instance publishes its circuits this often, for `gateway providers` and the console. */
  readonly publishHealthEvery: Duration.Duration
  /** Each instance checks this often whether it can write media. */
  readonly checkMediaEvery: Duration.Duration
}

/** The values in production, which docs/architecture.md and docs/operating state. */
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
  readControlsEvery: Duration.seconds(1),
  publishHealthEvery: Duration.seconds(2),
  checkMediaEvery: Duration.seconds(5)
}

/** Read once, when a layer is built. Instances of one database must have the same values. */
export class Timings extends Context.Reference<Timings>()("gateway/Timings", {
  defaultValue: () => productionTimings
}) {}
