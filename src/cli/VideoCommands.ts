import { Command } from "@effect/cli"
import { Effect, Option, Schema } from "effect"
import { VideoNotFound } from "../domain/Failure.ts"
import { parseMediaName } from "../domain/Media.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { CommandFailed } from "../ExitCode.ts"
import { Audit } from "../services/admin/AuditLog.ts"
import * as Operations from "../services/admin/VideoAdmin.ts"
import { VideoAdmin, VideoRecord } from "../services/admin/VideoAdmin.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import { mediaStore } from "./CliServices.ts"
import { change, command, findOrganizationId } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const DeletedMedia = Schema.Struct({ id: Schema.String, deleted: Schema.Boolean })

const deleteMedia = (name: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { remove } = yield* MediaStore
    const missing = new CommandFailed({ message: `There is no ${name} in the media store.` })
    return yield* change({
      action: "media.delete",
      input: {},
      target: name,
      record: DeletedMedia,
      find: () => Effect.succeed(undefined),
      run: () => Effect.flatMap(remove(name), (deleted) => (deleted ? Effect.void : missing)),
      recordOf: () => ({ id: name, deleted: true }),
      targetOf: () => name
    })
  })

const columns = ["at", "id", "status", "step", "model", "seconds", "route", "charge_usd", "completed_at"]

const attemptColumns = ["attempt", "route", "outcome", "status", "ms", "detail"]

const statuses = VideoRecord.fields.status.literals

const list = command(
  "list",
  "List videos, newest first.",
  {
    org: Inputs.orgFilter,
    model: Inputs.optional(Inputs.text("model"), "a model's id; default: all"),
    status: Inputs.optional(Inputs.oneOf("status", statuses), `status: ${statuses.join(", ")}; default: all`),
    limit: Inputs.limit(10_000, "maximum number of videos")
  },
  Effect.fnUntraced(function* ({ org, ...filters }) {
    const { list } = yield* VideoAdmin
    const jobs = yield* list(OrganizationScope.all, { org: yield* findOrganizationId(org), ...filters })
    return Output.list(jobs, { columns, none: "There are no videos." })
  })
)

const id = Inputs.word("ID", "a video's id, vid_…")

const failIfMissing = <A, E, R>(found: Effect.Effect<A, E, R>) =>
  Effect.catchIf(
    found,
    (error) => error instanceof VideoNotFound,
    () => new CommandFailed({ message: "There is no such video." })
  )

const describe = (record: VideoRecord): string => {
  const { attempts, error, ...fields } = record
  const failedAttempt = error?.attempt ? `attempt ${error.attempt} of ${attempts.length}` : undefined
  const sheet = Output.sheet({
    ...fields,
    ...(error && { error: `${error.code}: ${error.message}` }),
    ...(failedAttempt !== undefined && { failed: failedAttempt })
  })
  const rows = attempts.map((attempt, index) => ({ ...attempt, attempt: index + 1 }))
  return rows.length === 0 ? sheet : `${sheet}\n\n${Output.table(rows, attemptColumns, "")}`
}

const toOutput = (document: VideoRecord) => ({ document, text: describe(document) })

const videoCommand = <E, R>(
  name: string,
  description: string,
  run: (id: string) => Effect.Effect<{ readonly record: VideoRecord }, E, R>
) =>
  command(name, description, { id }, ({ id }) => Effect.map(failIfMissing(run(id)), ({ record }) => toOutput(record)))

const show = command("show", "Show a video with its attempts and its error.", { id }, ({ id }) =>
  Effect.gen(function* () {
    const { find } = yield* VideoAdmin
    return toOutput(yield* failIfMissing(find(OrganizationScope.all, id)))
  })
)
const retry = videoCommand("retry", `${Operations.retry.summary}.`, Operations.retry.run)
const cancel = videoCommand("cancel", `${Operations.cancel.summary}.`, Operations.cancel.run)

export const videos = Inputs.group("videos", "Manage video jobs.").pipe(
  Command.withSubcommands([list, show, retry, cancel])
)

const remove = change(
  "delete",
  "Delete a media file permanently.",
  { url: Inputs.word("URL", "a media link, or the file name at its end") },
  Effect.fnUntraced(function* ({ url }) {
    const { nameOf } = yield* MediaStore
    // Accepts a link to a former public URL: the file name is enough.
    const name = Option.getOrElse(nameOf(url), () => url)
    if (parseMediaName(name) === undefined) {
      return yield* new CommandFailed({
        message: `${url} is not a media link of this gateway. Check MEDIA_PUBLIC_URL.`
      })
    }
    return yield* Effect.catchTag(
      deleteMedia(name),
      "MediaStoreFailed",
      ({ detail }) => new CommandFailed({ message: `The media store failed: ${detail}` })
    )
  })
).pipe(Command.provide(mediaStore))

export const media = Inputs.group("media", "Delete generated files.").pipe(Command.withSubcommands([remove]))
