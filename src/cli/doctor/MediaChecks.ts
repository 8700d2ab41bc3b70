import { existsSync } from "node:fs"
import { Effect, Option } from "effect"
import type { Settings } from "../../Settings.ts"
import { MediaStore } from "../../services/media/MediaStore.ts"
import * as MediaStores from "../../storage/MediaStores.ts"
import { type Finding, ok, problem, warning } from "./Finding.ts"

const probe = new TextEncoder().encode("gateway doctor")

const isSame = (bytes: Uint8Array) => Buffer.compare(bytes, probe) === 0

const checkLink = (link: string): Effect.Effect<Finding> =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(link, { signal })
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) }
  }).pipe(
    Effect.timeout("5 seconds"),
    Effect.map(({ body, status }) => {
      if (status === 200 && isSame(body)) return ok("media links", `${new URL(link).origin} gives what was stored`)
      const advice = status >= 500 ? "it fails there" : "let the public read it, or set MEDIA_PUBLIC_URL"
      return warning("media links", `${link} answers ${status}: ${advice}`)
    }),
    Effect.catchAll(() =>
      Effect.succeed(
        warning("media links", `${new URL(link).origin} does not answer here: see PUBLIC_URL, MEDIA_PUBLIC_URL`)
      )
    )
  )

const checkStore = Effect.fnUntraced(function* (isServed: boolean) {
  const store = yield* MediaStore
  return yield* Effect.acquireUseRelease(
    store.put({ type: "image/png", visibility: "public", body: probe }),
    (name) =>
      Effect.gen(function* () {
        const read = yield* store.read(name)
        if (!Option.exists(read, isSame)) return [problem("media store", "what was written cannot be read back")]
        const stored = ok("media store", "a file was written, read and deleted")
        return isServed ? [stored, yield* checkLink(store.link(name))] : [stored]
      }),
    (name) => Effect.ignore(store.remove(name))
  )
})

/** A disk's links are the gateway's own: without one running they lead nowhere. */
export const checkMedia = Effect.fn("Doctor.checkMedia")(function* ({ media }: Settings, isRunning: boolean) {
  if (media.store === "disk" && !existsSync(media.directory)) {
    return [warning("media store", `none yet: the first start makes ${media.directory}`)]
  }
  return yield* checkStore(media.store === "s3" || isRunning).pipe(
    Effect.provide(MediaStores.layer(media)),
    Effect.catchAll(({ detail }) => Effect.succeed([problem("media store", detail)]))
  )
})
