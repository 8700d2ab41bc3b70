import { Context, Effect } from "effect"

export type FailpointName =
  | "after_hold"
  | "mid_stream"
  | "before_settle"
  | "after_settle"
  | "video_submitting"
  | "video_submitted"
  | "video_polling"
  | "video_storing"
  | "video_stored"
  | "webhook_leased"
  | "webhook_sent"
  | "deletion_committed"
  | "change_committed"
  | "payment_applied"

/** Named steps between movements of money, at which a crash test can end the process. */
export class Failpoint extends Context.Reference<Failpoint>()("gateway/Failpoint", {
  defaultValue: () => ({ reach: (_name: FailpointName): Effect.Effect<void> => Effect.void })
}) {}
