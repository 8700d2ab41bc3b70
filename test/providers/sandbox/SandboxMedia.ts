import { Effect, Stream } from "effect"
import type { ImageRequest } from "../../../src/domain/Image.ts"
import type { ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import type { VideoRequest } from "../../../src/domain/VideoRules.ts"
import { make } from "../../../src/providers/sandbox/Sandbox.ts"
import type { VideoHandle } from "../../../src/services/routing/Provider.ts"
import * as TokensFake from "../../fakes/TokensFake.ts"

const base = (name: string) => ({
  id: `m@${name}`,
  provider: { name, adapter: "sandbox", baseUrl: undefined, credential: undefined, headers: {} },
  model: "theirs",
  preference: 1,
  weight: 1,
  options: {}
})

export const imageRoute = (name = "sandbox"): ImageRoute => ({
  ...base(name),
  editModel: "theirs",
  resolutions: new Set(["1K", "2K", "4K"]),
  aspectRatios: new Set(["1:1", "3:2", "2:3", "16:9"]),
  cost: new Map()
})

export const videoRoute = (name = "sandbox"): VideoRoute => ({
  ...base(name),
  referenceImage: "optional",
  imageModel: "theirs",
  seconds: [1, 5, 15],
  secondsAs: "number",
  cost: undefined
})

/** Each call makes a new, independent sandbox. */
const sandbox = Effect.provide(make, TokensFake.layer)
export const imageOf = Effect.flatMap(sandbox, ({ image }) => Effect.fromNullable(image)).pipe(Effect.orDie)
export const videoOf = Effect.flatMap(sandbox, ({ video }) => Effect.fromNullable(video)).pipe(Effect.orDie)

export const imageRequest = (overrides: Partial<ImageRequest> = {}): ImageRequest => ({
  prompt: "A red fox",
  resolution: "1K",
  shape: undefined,
  references: [],
  ...overrides
})

/** Returns the failure of an effect. Dies without printing an answer, which could be a megabyte. */
export const failureOf = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<E> =>
  Effect.flip(Effect.asVoid(effect)).pipe(Effect.catchAll(() => Effect.dieMessage("it did not fail")))

export const draw = (overrides: Partial<ImageRequest>, route = imageRoute()) =>
  Effect.flatMap(imageOf, (image) => image.generate(route, imageRequest(overrides)))

export const submit = (overrides: Partial<VideoRequest>, route = videoRoute()) =>
  Effect.flatMap(videoOf, (video) =>
    video.submit(route, { prompt: "A red fox", seconds: 5, reference: undefined, ...overrides })
  )

export const poll = (handle: VideoHandle) => Effect.flatMap(videoOf, (video) => video.poll(videoRoute(), handle))

export const download = Effect.fnUntraced(function* (handle: VideoHandle) {
  const video = yield* videoOf
  return { bytes: Buffer.concat([...(yield* Stream.runCollect(video.download(videoRoute(), handle)))]) }
})
