import { Effect, type Scope } from "effect"
import type { VideoRoute } from "../../../src/domain/Model.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import type { Clip, Harness, Host, Weather } from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as JobHost from "../../harness/upstream/JobHost.ts"
import * as ReplicateHost from "../../harness/upstream/ReplicateHost.ts"
import { account, dataUri, pictureAt, services, videoRoute } from "../fal-queue/Hosts.ts"

export const replicateAccount = (baseUrl: string) => ({ ...account(baseUrl), adapter: "replicate" })

export const clipRoute = (baseUrl: string, options: VideoRoute["options"] = {}): VideoRoute => ({
  ...videoRoute(baseUrl),
  provider: replicateAccount(baseUrl),
  model: "vendor/film",
  imageModel: "vendor/film-from-image",
  options
})

/** What a model says when it refuses: each has words of its own. */
export const refusedContent = "The input or output was flagged as sensitive. Please try again. (E005) (VYKG0CLfUe)"

/** A download that never gives the whole file. */
const failures = {
  missing: Fake.json(404, {}),
  server: Fake.json(500, {}),
  cut: Fake.steps({ type: "video/mp4" }, "half a clip", Fake.cut)
}

const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const replicate = yield* ReplicateHost.make
  const other = yield* Fake.make
  let looksAt: Effect.Effect<Fake.Received> = replicate.heard("download")
  const url = ({ bytes, where }: Clip) =>
    where === "inside" ? dataUri(bytes) : `${where === "own" ? replicate.origin : other.url}/xezq/tmp.mp4`
  return {
    route: clipRoute(replicate.origin),
    understood: Effect.gen(function* () {
      const { credential, input, model, prefer } = ReplicateHost.predictionOf(yield* replicate.heard("submit"))
      if (prefer !== "respond-async") return yield* Effect.dieMessage(`a clip is waited for: ${prefer}`)
      const { duration, image, prompt } = input
      const reference = image === undefined ? undefined : yield* Effect.promise(() => pictureAt(image))
      return { model, prompt: String(prompt), seconds: duration, reference, credential }
    }),
    starts: replicate.stands("processing"),
    strays: replicate.stands("paused"),
    finishes: (clip) => {
      const reply = Fake.steps({ type: "video/mp4" }, clip.bytes)
      looksAt = clip.where === "elsewhere" ? other.received : replicate.heard("download")
      return Effect.all([
        clip.where === "elsewhere" ? other.script(reply, reply) : replicate.always("download", reply),
        replicate.succeeds(url(clip))
      ])
    },
    fails: (ending) => {
      if (ending === "no clip") return replicate.succeeds([])
      return replicate.fails(ending === "moderation" ? refusedContent : ending === "flagged" ? "NSFW content" : "OOM")
    },
    meets: (step, weather) => replicate.meets(step === "submit" ? "submit" : "poll", ReplicateHost.refusals[weather]),
    serves: (how) => replicate.always("download", failures[how]),
    fetched: Effect.suspend(() => looksAt).pipe(Effect.map(({ headers }) => headers.authorization)),
    cancelled: Effect.asVoid(replicate.heard("cancel")),
    holds: (step) => JobHost.holding(replicate, step === "submit" ? "submit" : "poll")
  }
})

const unread: ReadonlyArray<Weather> = ["page", "garbage", "empty", "cut answer"]
const asking: ReadonlyArray<Weather> = ["limit", "funds", "key", "server", "missing", ...unread]

export const harness: Harness = {
  name: "replicate on our own fake",
  make: Replicate.make,
  services,
  host: ownHost,
  weathers: { submit: ["request", "image", "moderation", ...asking], poll: asking, result: [] },
  endings: ["moderation", "flagged", "runner", "no clip"],
  where: ["own", "elsewhere", "inside"]
}
