import { Effect, type Scope } from "effect"
import type { ImageRoute } from "../../../src/domain/Model.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import type { Harness, Host, Painting, Weather } from "../../contracts/ImageHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as JobHost from "../../harness/upstream/JobHost.ts"
import * as ReplicateHost from "../../harness/upstream/ReplicateHost.ts"
import { pictureAt } from "../fal-queue/Hosts.ts"
import { harness as falHarness, hurriedServices, imageRoute } from "../fal-queue/ImageHosts.ts"
import { refusedContent, replicateAccount } from "./Hosts.ts"

export const drawRoute = (baseUrl: string, options: ImageRoute["options"] = {}): ImageRoute => ({
  ...imageRoute(baseUrl, options),
  provider: replicateAccount(baseUrl),
  model: "vendor/draw",
  editModel: "vendor/draw-over"
})

const inline = (bytes: Uint8Array | string) =>
  `data:image/png;base64,${typeof bytes === "string" ? bytes : Buffer.from(bytes).toString("base64")}`

/** A host that refuses to predict, or whose prediction gives what it should not. */
const meet = (replicate: ReplicateHost.ReplicateHost, weather: Weather): Effect.Effect<unknown> => {
  switch (weather) {
    case "page":
    case "garbage":
    case "empty":
    case "cut answer":
      return replicate.always("poll", ReplicateHost.refusals[weather])
    case "moderation":
      return replicate.fails(refusedContent)
    case "error inside":
      return replicate.fails({ message: "boom" })
    case "no picture":
      return replicate.succeeds(null)
    case "broken picture":
      return replicate.succeeds(inline("<svg/> is no base64!"))
    case "empty picture":
      return replicate.succeeds(inline(""))
    default:
      return replicate.meets("submit", ReplicateHost.refusals[weather])
  }
}

export const ownHost: Effect.Effect<Host & { readonly replicate: ReplicateHost.ReplicateHost }, never, Scope.Scope> =
  Effect.gen(function* () {
    const replicate = yield* ReplicateHost.make
    const other = yield* Fake.make
    let looksAt: Effect.Effect<Fake.Received> = replicate.heard("download")
    const answers = ({ bytes, where }: Painting) => {
      const reply = Fake.steps({ type: "image/png" }, bytes)
      const url = `${where === "elsewhere" ? other.url : replicate.origin}/xezq/tmp.png?sig=a%2Fb`
      looksAt = where === "elsewhere" ? other.received : replicate.heard("download")
      return Effect.all([
        where === "elsewhere" ? other.script(reply) : replicate.always("download", reply),
        replicate.succeeds(where === "inside" ? inline(bytes) : [url, "https://replicate.delivery/xezq/another.png"])
      ])
    }
    return {
      replicate,
      route: drawRoute(replicate.origin),
      answers,
      meets: (weather) => meet(replicate, weather),
      understood: Effect.gen(function* () {
        const { credential, input, model } = ReplicateHost.predictionOf(yield* replicate.heard("submit"))
        const uris = Array.isArray(input.image_input) ? input.image_input : []
        const references = yield* Effect.promise(() => Promise.all(uris.map(pictureAt)))
        return { model, prompt: String(input.prompt), references, credential }
      }),
      fetched: Effect.suspend(() => looksAt).pipe(Effect.map(({ headers }) => ({ credential: headers.authorization }))),
      holds: (painting) =>
        Effect.zipRight(
          answers(painting),
          JobHost.delaying(replicate, "submit", { id: "019afc7100007000", status: "processing", output: null })
        )
    }
  })

export const harness: Harness = {
  ...falHarness,
  name: "replicate on our own fake",
  make: Replicate.make,
  services: hurriedServices,
  host: ownHost,
  has: { ...falHarness.has, revisedPrompt: false }
}
