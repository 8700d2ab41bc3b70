import { Data, Effect, Schema } from "effect"
import { MediaStore } from "../media/MediaStore.ts"
import { Audit } from "./Audit.ts"

const DeletedMedia = Schema.Struct({ id: Schema.String, deleted: Schema.Boolean })

class MediaNotFound extends Data.TaggedError("MediaNotFound")<{ readonly name: string }> {
  override get message() {
    return `There is no ${this.name} in the media store.`
  }
}

/** Takes a file down, for good. */
export const deleteMedia = (name: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { remove } = yield* MediaStore
    return yield* change({
      action: "media.delete",
      input: {},
      target: name,
      record: DeletedMedia,
      find: () => Effect.succeed(undefined),
      run: () => Effect.flatMap(remove(name), (deleted) => (deleted ? Effect.void : new MediaNotFound({ name }))),
      recordOf: () => ({ id: name, deleted: true }),
      targetOf: () => name
    })
  })
