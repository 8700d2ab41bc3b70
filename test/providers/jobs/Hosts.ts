import { Clock, Duration, Effect, Layer, Redacted } from "effect"
import { makesShape, sendsShape } from "../../../src/domain/Image.ts"
import type { MediaType, Picture } from "../../../src/domain/Media.ts"
import type { ImageModel, ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import { type Painting, picture } from "../../contracts/ImageHarness.ts"
import { base64, imageTypeOf, type Place, secret, services } from "../../contracts/MediaHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import type { JobHost } from "./JobHost.ts"

export const accountOf = (adapter: string, baseUrl: string, headers: Readonly<Record<string, string>> = {}) => ({
  name: "fake",
  adapter,
  baseUrl,
  credential: Redacted.make(secret),
  headers
})

type Given<Route> = Pick<Route, Extract<keyof Route, "provider" | "model" | "imageModel" | "editModel">> &
  Partial<Route>

export const videoRouteOf = (input: Given<VideoRoute>): VideoRoute => ({
  id: "ours@fake",
  referenceImage: "optional",
  preference: 1,
  weight: 1,
  seconds: [4, 6, 8],
  secondsAs: "number",
  cost: undefined,
  options: {},
  ...input
})

export const imageRouteOf = ({ options, ...input }: Given<ImageRoute>): ImageRoute => ({
  id: "ours@fake",
  preference: 1,
  weight: 1,
  resolutions: new Set(["1K", "2K", "4K"]),
  aspectRatios: new Set<string>(),
  cost: new Map(),
  options: { sizes: { "1K": "1K", "2K": "2K", "4K": "4K" }, ...options },
  ...input
})

/** Uses the platform's URL parser. */
export const pictureAt = (uri: unknown): Effect.Effect<Picture> =>
  Effect.promise(async () => {
    const response = await fetch(String(uri))
    const type = imageTypeOf(response.headers.get("content-type"))
    if (type === undefined) throw new Error("a reference of no known type")
    return { type, bytes: new Uint8Array(await response.arrayBuffer()) }
  })

export const dataUri = (type: MediaType, bytes: Uint8Array) => `data:${type};base64,${base64(bytes)}`

/** Serves the results of a host's jobs. */
export const resultsOf = (host: JobHost<"download">, type: MediaType) =>
  Effect.gen(function* () {
    const other = yield* Fake.make
    let downloads = host.heard("download")
    const failures = {
      missing: Fake.json(404, {}),
      server: Fake.json(500, {}),
      cut: Fake.steps({ type }, "half a file", Fake.cut)
    }
    return {
      /** Moves the result to a new URL. */
      place: ({ bytes, where }: { readonly bytes: Uint8Array; readonly where: Place }) =>
        Effect.gen(function* () {
          const reply = Fake.steps({ type }, bytes)
          downloads = where === "elsewhere" ? other.received : host.heard("download")
          if (where === "elsewhere") yield* other.script(reply, reply)
          yield* host.always("download", reply)
          const origin = where === "elsewhere" ? other.url : host.origin
          return where === "inside" ? dataUri(type, bytes) : `${origin}/files/1?sig=a%2Fb`
        }),
      serve: (how: keyof typeof failures) => host.always("download", failures[how]),
      /** Waits for the next download request. */
      credential: Effect.suspend(() => downloads).pipe(Effect.map(({ headers }) => headers.authorization))
    }
  })

/** A clock that shortens an adapter's pauses to a tenth. */
export const hurriedServices = Layer.merge(
  services,
  Layer.suspend(() => {
    const clock = Clock.make()
    return Layer.setClock({
      [Clock.ClockTypeId]: Clock.ClockTypeId,
      unsafeCurrentTimeMillis: () => clock.unsafeCurrentTimeMillis(),
      unsafeCurrentTimeNanos: () => clock.unsafeCurrentTimeNanos(),
      currentTimeMillis: clock.currentTimeMillis,
      currentTimeNanos: clock.currentTimeNanos,
      sleep: (duration) => clock.sleep(Duration.times(duration, 0.1))
    })
  })
)

export const drawing: Painting = { bytes: picture("image/png", 1).bytes, where: "own" }

/** Every resolution of a route, alone and with each supported shape. */
export const tellable = (model: ImageModel, route: ImageRoute) =>
  [...route.resolutions].flatMap((resolution) => [
    { resolution, shape: undefined },
    ...model.variants.filter(
      (variant) =>
        variant.resolution === resolution &&
        sendsShape(model, route, resolution) &&
        makesShape(route, resolution, variant.shape)
    )
  ])
