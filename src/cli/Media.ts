import { Command } from "@effect/cli"
import { Effect, Option } from "effect"
import { parseMediaName } from "../domain/Media.ts"
import { deleteMedia } from "../services/admin/MediaChanges.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change } from "./Commands.ts"
import { mediaStore } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"

const remove = change(
  "delete",
  "Take a file down, for good.",
  { url: Inputs.word("URL", "a link that the gateway gave, or the name at its end") },
  Effect.fnUntraced(function* ({ url }) {
    const { named } = yield* MediaStore
    // The public URL may have changed since the link was made.
    const name = Option.getOrElse(named(url), () => url)
    if (parseMediaName(name) === undefined) {
      return yield* new CommandFailed({ message: `${url} is no link to this gateway's media; see MEDIA_PUBLIC_URL.` })
    }
    return yield* Effect.catchTag(
      deleteMedia(name),
      "MediaStoreFailed",
      ({ detail }) => new CommandFailed({ message: `The media store failed: ${detail}` })
    )
  })
).pipe(Command.provide(mediaStore))

export const media = Inputs.group("media", "Files that were made for customers.").pipe(
  Command.withSubcommands([remove])
)
