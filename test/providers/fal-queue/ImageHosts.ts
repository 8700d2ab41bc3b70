import { it } from "@effect/vitest"
import { Clock, Duration, Effect, Layer, type Scope } from "effect"
import type { ImageRoute } from "../../../src/domain/Model.ts"
import type { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import type { Fetcher } from "../../../src/services/media/Fetcher.ts"
import type { ImageAdapter, Provider } from "../../../src/services/routing/Provider.ts"
import { type Harness, type Host, type Painting, picture, type Weather } from "../../contracts/ImageHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as FalHost from "../../harness/upstream/FalHost.ts"
import * as JobHost from "../../harness/upstream/JobHost.ts"
import { account, pictureAt, services } from "./Hosts.ts"

export const imageRoute = (baseUrl: string, options: ImageRoute["options"] = {}): ImageRoute => ({
  id: "ours@fake",
  provider: account(baseUrl),
  model: "vendor/draw/v1",
  editModel: "vendor/draw/v1/edit",
  preference: 1,
  weight: 1,
  resolutions: new Set(["1K", "2K", "4K"]),
  cost: new Map(),
  options: { sizes: { "1K": "1K", "2K": "2K", "4K": "4K" }, ...options }
})

/** Pauses of the adapter last a tenth of what they should. */
const hurried = Layer.suspend(() => {
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

export const hurriedServices = Layer.merge(services, hurried)

const inline = (bytes: Uint8Array | string) => ({
  images: [
    { url: `data:image/png;base64,${typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("base64")}` }
  ]
})

/** A host that refuses to take the job, or whose finished job gives what it should not. */
const meet = (fal: FalHost.FalHost, weather: Weather): Effect.Effect<void> => {
  switch (weather) {
    case "page":
      return fal.always("poll", FalHost.refusals.page)
    case "garbage":
    case "empty":
    case "cut answer":
      return Effect.zipRight(fal.ends({}), fal.always("result", FalHost.refusals[weather]))
    case "error inside":
      return fal.ends({ error: { message: "boom", type: "server_error" } })
    case "no picture":
      return fal.ends({ images: [] })
    case "broken picture":
      return fal.ends(inline("<svg/> is no base64!"))
    case "empty picture":
      return fal.ends(inline(""))
    default:
      return fal.meets("submit", FalHost.refusals[weather])
  }
}

export const ownHost: Effect.Effect<Host & { readonly fal: FalHost.FalHost }, never, Scope.Scope> = Effect.gen(
  function* () {
    const fal = yield* FalHost.make
    const other = yield* Fake.make
    let looksAt: Effect.Effect<Fake.Received> = fal.heard("download")
    const answers = ({ bytes, revisedPrompt, where }: Painting) => {
      const reply = Fake.steps({ type: "image/png" }, bytes)
      const url = `${where === "elsewhere" ? other.url : fal.origin}/files/1.png?sig=a%2Fb`
      const found = where === "own" || where === "elsewhere" ? { images: [{ url }] } : inline(bytes)
      looksAt = where === "elsewhere" ? other.received : fal.heard("download")
      return Effect.all([
        where === "elsewhere" ? other.script(reply) : fal.always("download", reply),
        fal.ends(revisedPrompt === undefined ? found : { ...found, revised_prompt: revisedPrompt })
      ])
    }
    return {
      fal,
      route: imageRoute(fal.url),
      answers,
      meets: (weather) => meet(fal, weather),
      understood: Effect.gen(function* () {
        const { credential, input, model } = FalHost.jobOf(yield* fal.heard("submit"))
        const urls = Array.isArray(input.image_urls) ? input.image_urls : []
        const references = yield* Effect.promise(() => Promise.all(urls.map(pictureAt)))
        return { model, prompt: String(input.prompt), references, credential }
      }),
      fetched: Effect.suspend(() => looksAt).pipe(Effect.map(({ headers }) => ({ credential: headers.authorization }))),
      holds: (painting) =>
        Effect.zipRight(
          answers(painting),
          JobHost.delaying(fal, "submit", { request_id: "019afc71-0000-7000-8000-000000000000", status: "IN_QUEUE" })
        )
    }
  }
)

export const harness: Harness = {
  name: "fal-queue on our own fake",
  make: FalQueue.make,
  services: hurriedServices,
  host: ownHost,
  weathers: [
    "limit",
    "funds",
    "key",
    "request",
    "image",
    "moderation",
    "server",
    "missing",
    "page",
    "garbage",
    "empty",
    "error inside",
    "no picture",
    "broken picture",
    "empty picture",
    "cut answer"
  ],
  has: { places: ["inside", "own", "elsewhere"], revisedPrompt: true, edits: true, waiting: true }
}

/** Checks of an adapter beyond the contract, each with a host of its own. */
export const checking =
  <Own>(make: Effect.Effect<Provider, never, Upstream | Fetcher>, ownHostOf: Effect.Effect<Own, never, Scope.Scope>) =>
  (
    name: string,
    body: (
      adapter: ImageAdapter,
      host: Own
    ) => Effect.Effect<unknown, unknown, Scope.Scope | Layer.Layer.Success<typeof hurriedServices>>
  ) =>
    it.scopedLive(name, () =>
      Effect.gen(function* () {
        const { image } = yield* make
        if (image === undefined) return yield* Effect.dieMessage("no images")
        return yield* body(image, yield* ownHostOf)
      }).pipe(Effect.provide(hurriedServices))
    )

export const drawing: Painting = { bytes: picture("image/png", 1).bytes, where: "own" }
