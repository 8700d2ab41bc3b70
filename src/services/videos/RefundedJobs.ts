import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { RefundedVideos } from "../ledger/Refunds.ts"
import { internalError } from "./VideoState.ts"
import { cancelJob } from "./VideoViews.ts"

export const layer = Layer.effect(
  RefundedVideos,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    cancel: (id) => Effect.asVoid(cancelJob(sql, id, internalError, true))
  }))
)
