import type { SqlError } from "@effect/sql"
import { Context, type Effect } from "effect"
import type { HoldContended, HoldMissing } from "./HoldClosing.ts"

/** The port by which a refund ends the video that was ordered with the hold. */
export class RefundedVideos extends Context.Tag("gateway/RefundedVideos")<
  RefundedVideos,
  {
    /** Releases its hold too; does nothing to a video that is over, or was never written. */
    readonly cancel: (id: string) => Effect.Effect<void, SqlError.SqlError | HoldContended | HoldMissing>
  }
>() {}
