import { Args, Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { VideoAdmin, type VideoJob } from "../services/videos/VideoAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, filterOf } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { attemptRecord } from "./requests/Record.ts"

export const recordOf = (job: VideoJob): Output.Fields => ({
  id: job.id,
  request_id: job.requestId,
  at: job.createdAt,
  status: job.status,
  step: job.step,
  org: job.orgId,
  key_id: job.keyId,
  model: job.model,
  seconds: job.seconds,
  route: job.route?.id ?? null,
  price_usd: job.price,
  charge_usd: job.charged,
  cost_usd: job.cost,
  error: job.errorCode === null ? null : { code: job.errorCode, message: job.errorMessage },
  progress: job.progress,
  completed_at: job.completedAt,
  deleted_at: job.deletedAt,
  deadline: job.deadline,
  media: job.media,
  hold_id: job.holdId,
  handle: job.handle,
  tried: job.tried,
  attempts: job.attempts.map(attemptRecord),
  doubts: job.doubts,
  polls: job.polls,
  downloads: job.downloads,
  next_at: job.nextAt,
  lease_until: job.leaseUntil
})

const columns = ["at", "id", "status", "step", "model", "seconds", "route", "charge_usd", "completed_at"]

const list = command(
  "list",
  "List videos, newest first.",
  {
    org: Inputs.orgFilter,
    model: Inputs.optional(Inputs.text("model"), "a model's id; default: all"),
    status: Inputs.optional(
      Options.choice("status", ["queued", "in_progress", "completed", "failed"]),
      "where they stand; default: all"
    ),
    limit: Inputs.limit(10_000, "how many videos")
  },
  Effect.fnUntraced(function* ({ org, ...filters }) {
    const { list } = yield* VideoAdmin
    const jobs = yield* list({ org: yield* filterOf(org), ...filters })
    return Output.list(jobs.map(recordOf), { columns, none: "There are no videos." })
  })
)

const one = (name: "show" | "retry" | "cancel", description: string) =>
  command(
    name,
    description,
    { id: Args.text({ name: "ID" }).pipe(Args.withDescription("a video's id, vid_…")) },
    Effect.fnUntraced(
      function* ({ id }) {
        const videos = yield* VideoAdmin
        return Output.record(recordOf(yield* videos[name === "show" ? "find" : name](id)))
      },
      Effect.catchTag("VideoNotFound", () => new CommandFailed({ message: "There is no such video." }))
    )
  )

export const videos = Inputs.group("videos", "Renders, as jobs of the database.").pipe(
  Command.withSubcommands([
    list,
    one("show", "Show a video and everything that was tried for it."),
    one("retry", "Look at a video that is not over now, instead of after its rest."),
    one("cancel", "Fail a video that is not over and give its hold back.")
  ])
)
