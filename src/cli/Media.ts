import { Args, Command } from "@effect/cli"
import { Effect, Option } from "effect"
import { parseMediaName } from "../domain/Media.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { mediaStore } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { presentRecord } from "./Output.ts"

/** A name is taken too: what links are built on may have changed since this one was made. */
const nameOf = (text: string) =>
  Effect.map(MediaStore, ({ named }) =>
    Option.orElse(named(text), () => Option.liftPredicate(text, (it) => parseMediaName(it) !== undefined))
  )

const remove = Command.make(
  "delete",
  {
    url: Args.text({ name: "URL" }).pipe(Args.withDescription("a link that the gateway gave, or the name at its end")),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ json, url }) {
    const name = yield* nameOf(url)
    if (Option.isNone(name)) {
      return yield* new CommandFailed({ message: `${url} is no link to this gateway's media; see MEDIA_PUBLIC_URL.` })
    }
    const { remove } = yield* MediaStore
    const deleted = yield* Effect.mapError(
      remove(name.value),
      ({ detail }) => new CommandFailed({ message: `The media store failed: ${detail}` })
    )
    if (!deleted) return yield* new CommandFailed({ message: `There is no ${name.value} in the media store.` })
    yield* presentRecord(json, { id: name.value, deleted })
  })
).pipe(Command.withDescription("Take a file down, for good."), Command.provide(mediaStore))

export const media = Inputs.group("media", "Files that were made for customers.").pipe(
  Command.withSubcommands([remove])
)
