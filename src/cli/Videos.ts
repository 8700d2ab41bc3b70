import { Args, Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { Organizations } from "../services/access/Organizations.ts"
import { VideoAdmin, type VideoJob } from "../services/videos/VideoAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, presentList, presentRecord } from "./Output.ts"

const record = (job: VideoJob): Fields => ({
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
  completed_at: job.completedAt,
  deadline: job.deadline,
  media: job.media,
  hold_id: job.holdId,
  handle: job.handle,
  tried: job.tried,
  attempts: job.attempts,
  doubts: job.doubts,
  polls: job.polls,
  downloads: job.downloads,
  next_at: job.nextAt,
  lease_until: job.leaseUntil
})

const columns = ["at", "id", "status", "step", "model", "seconds", "route", "charge_usd", "completed_at"]

const idArgument = Args.text({ name: "ID" }).pipe(Args.withDescription("a video's id, vid_…"))

const present = (json: boolean, found: Effect.Effect<VideoJob, { readonly _tag: string; readonly message: string }>) =>
  found.pipe(
    Effect.mapError((error) =>
      error._tag === "VideoNotFound" ? new CommandFailed({ message: "There is no such video." }) : error
    ),
    Effect.flatMap((job) => presentRecord(json, record(job)))
  )

const optional = <A>(option: Options.Options<A>, description: string) =>
  option.pipe(Options.withDescription(description), Options.optional)

const list = Command.make(
  "list",
  {
    org: Inputs.orgOption.pipe(Options.optional),
    model: optional(Options.text("model"), "a model's id"),
    status: optional(Options.choice("status", ["queued", "in_progress", "completed", "failed"]), "where they stand"),
    limit: Inputs.option("limit", "an integer from 1 to 10000", Inputs.whole(1, 10_000)).pipe(
      Options.withDescription("how many"),
      Options.withDefault(100)
    ),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ json, limit, model, org, status }) {
    const organizations = yield* Organizations
    const found = yield* Effect.transposeOption(Option.map(org, organizations.find))
    const jobs = yield* Effect.flatMap(VideoAdmin, (admin) =>
      admin.list({
        org: Option.getOrUndefined(found)?.id,
        model: Option.getOrUndefined(model),
        status: Option.getOrUndefined(status),
        limit
      })
    )
    yield* presentList(json, jobs.map(record), { columns, none: "There are no videos." })
  })
).pipe(Command.withDescription("List videos, newest first."), Command.provide(operator))

const one = (name: "show" | "retry" | "cancel", description: string) =>
  Command.make(
    name,
    { id: idArgument, json: Inputs.json },
    Effect.fnUntraced(function* ({ id, json }) {
      const admin = yield* VideoAdmin
      const act = name === "show" ? admin.find : admin[name]
      yield* present(json, act(id))
    })
  ).pipe(Command.withDescription(description), Command.provide(operator))

export const videos = Inputs.group("videos", "Renders, as jobs of the database.").pipe(
  Command.withSubcommands([
    list,
    one("show", "Show a video and everything that was tried for it."),
    one("retry", "Look at a video that is not over now, instead of after its rest."),
    one("cancel", "Fail a video that is not over and give its hold back.")
  ])
)
