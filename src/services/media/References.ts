import { Context, Duration, Effect, Layer, Option } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { largestReference, maxReferences, type Picture, type Reference } from "../../domain/Media.ts"
import { Fetcher } from "./Fetcher.ts"
import { pictureOf } from "./Pictures.ts"

const within = Duration.seconds(30)
const atOnce = 4

/** In bytes; a chat's pictures stay in its body, as base64. */
const largestTogether = { image: maxReferences * largestReference, messages: 64 * 1024 * 1024 }

const refuse =
  (param: "image" | "messages") =>
  (detail: string): Effect.Effect<never, InvalidRequest> =>
    Effect.zipRight(
      Effect.logDebug("A reference image was refused", detail),
      new InvalidRequest({ message: "Failed to process the reference image.", param })
    )

export class References extends Context.Tag("gateway/References")<
  References,
  {
    /** Fails with `Failed to process the reference image.` unless each is a complete picture of at most 20 MiB. */
    readonly load: (
      references: ReadonlyArray<Reference>,
      param: "image" | "messages"
    ) => Effect.Effect<ReadonlyArray<Picture>, InvalidRequest>
    /** Applies the rules of our own fetches to URLs that the provider fetches. */
    readonly check: (urls: ReadonlyArray<string>) => Effect.Effect<unknown, InvalidRequest>
  }
>() {
  static readonly layer = Layer.effect(
    References,
    Effect.gen(function* () {
      const fetcher = yield* Fetcher

      const bytesOf = (reference: Reference): Effect.Effect<Uint8Array, string> =>
        reference._tag === "Bytes"
          ? Effect.succeed(reference.bytes)
          : fetcher
              .bytes({
                url: reference.url,
                from: "customer",
                limitBytes: largestReference,
                withinSeconds: Duration.toSeconds(within)
              })
              .pipe(Effect.mapError(({ detail, reason }) => `${reason}: ${detail}`))

      const load = Effect.fn("References.load")(
        function* (references: ReadonlyArray<Reference>, param: "image" | "messages") {
          let together = 0
          const one = Effect.fnUntraced(function* (reference: Reference) {
            const bytes = yield* bytesOf(reference)
            together += bytes.length
            if (bytes.length > largestReference) return yield* Effect.fail("larger than 20 MiB")
            if (together > largestTogether[param]) return yield* Effect.fail("too large together")
            const picture = yield* pictureOf(bytes)
            return yield* Option.match(picture, {
              onNone: () => Effect.fail("not a whole PNG, JPEG, WebP or GIF"),
              onSome: Effect.succeed
            })
          })
          return yield* Effect.forEach(references, one, { concurrency: atOnce })
        },
        Effect.timeoutFail({ duration: within, onTimeout: () => "took too long" }),
        (loading, _, param) => Effect.catchAll(loading, refuse(param))
      )

      const check = (urls: ReadonlyArray<string>) =>
        Effect.forEach(urls, (url) => fetcher.check({ url, from: "customer" }), { concurrency: atOnce }).pipe(
          Effect.mapError(({ detail, reason }) => `${reason}: ${detail}`),
          Effect.timeoutFail({ duration: within, onTimeout: () => "took too long" }),
          Effect.catchAll(refuse("messages"))
        )

      return References.of({ load, check })
    })
  )
}
