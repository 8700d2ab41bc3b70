import { Context, type Effect } from "effect"
import type { InvalidRequest } from "../domain/Failure.ts"
import type { Picture, Reference } from "../domain/Media.ts"

/** Turns what customers hand us into pictures. */
export class References extends Context.Tag("gateway/References")<
  References,
  {
    /**
     * Fetches what is a URL and checks that each is a whole PNG, JPEG, WebP or GIF of at most 20 MiB, by its bytes.
     * Whatever is wrong is the customer's `Failed to process the reference image.`; `param` is the field they came in.
     */
    readonly load: (
      references: ReadonlyArray<Reference>,
      param: "image" | "messages"
    ) => Effect.Effect<ReadonlyArray<Picture>, InvalidRequest>
  }
>() {}
