import { Effect } from "effect"
import Replicate from "replicate"
import * as Ours from "../../../src/providers/replicate/Replicate.ts"
import type { ImageAdapter, VideoAdapter } from "../../../src/services/routing/Provider.ts"
import * as Images from "../../contracts/ImageHarness.ts"
import { secret, services } from "../../contracts/MediaHarness.ts"
import * as Videos from "../../contracts/VideoHarness.ts"
import { assert, type Body, describe, effectOf, it, liveOver } from "../../harness/It.ts"
import type { Received } from "../../harness/upstream/FakeUpstream.ts"
import { clipRoute, drawRoute } from "./Hosts.ts"
import * as ReplicateHost from "./ReplicateHost.ts"

const model = "google/veo-3.1"
const input = { prompt: "A red bicycle", duration: 8 } as const

const client = (host: ReplicateHost.ReplicateHost) =>
  new Replicate({ auth: secret, baseUrl: `${host.origin}/v1`, useFileOutput: false })

const check = (name: string, body: Body<[replicate: Replicate, host: ReplicateHost.ReplicateHost], never>) =>
  it.scopedLive(name, () => Effect.flatMap(ReplicateHost.make, (host) => effectOf(body)(client(host), host)))

describe("our own host of predictions, as Replicate's official client sees it", () => {
  check("creates a prediction, tells where it stands, gives its output", function* ({ predictions }, host) {
    const created = yield* Effect.promise(() => predictions.create({ model, input }))
    assert.deepStrictEqual(
      [created.status, created.model, created.input, created.output],
      ["starting", model, input, null]
    )
    yield* host.stands("processing")
    const running = yield* Effect.promise(() => predictions.get(created.id))
    assert.deepStrictEqual([running.status, running.id], ["processing", created.id])
    assert.strictEqual((yield* host.heard("poll")).path, new URL(running.urls.get).pathname)
    yield* host.succeeds("https://replicate.delivery/xezq/tmp.mp4")
    const over = yield* Effect.promise(() => client(host).wait(running))
    assert.deepStrictEqual([over.status, over.output], ["succeeded", "https://replicate.delivery/xezq/tmp.mp4"])
  })

  check("runs a model to its output while it is waited for", function* (replicate, host) {
    yield* host.succeeds(["https://replicate.delivery/xezq/1.png"])
    const output = yield* Effect.promise(() => replicate.run(model, { input }))
    assert.deepStrictEqual(output, ["https://replicate.delivery/xezq/1.png"])
    assert.strictEqual(yield* host.unseen("poll"), 0)
  })

  check("fails a prediction with its own words", function* (replicate, host) {
    yield* host.fails("NSFW content detected")
    const running = Effect.tryPromise({ try: () => replicate.run(model, { input }), catch: String })
    assert.include(yield* Effect.flip(running), "Prediction failed: NSFW content detected")
  })

  check("gives a prediction up, where it is not over", function* ({ predictions }, host) {
    const { id, urls } = yield* Effect.promise(() => predictions.create({ model, input }))
    const canceled = yield* Effect.promise(() => predictions.cancel(id))
    assert.strictEqual(canceled.status, "canceled")
    const { method, path } = yield* host.heard("cancel")
    assert.deepStrictEqual([method, path], ["POST", new URL(urls.cancel).pathname])
    yield* host.succeeds("https://replicate.delivery/xezq/tmp.mp4")
    assert.strictEqual((yield* Effect.promise(() => predictions.cancel(id))).status, "succeeded")
  })

  for (const [name, status] of [
    ["request", 422],
    ["image", 422],
    ["moderation", 422],
    ["funds", 402],
    ["key", 401],
    ["missing", 404],
    ["server", 500]
  ] as const) {
    check(`refuses by ${name} with a status and a detail`, function* ({ predictions }, host) {
      yield* host.meets("submit", ReplicateHost.refusals[name])
      const error = yield* Effect.flip(
        Effect.tryPromise({ try: () => predictions.create({ model, input }), catch: String })
      )
      assert.include(error, `failed with status ${status}`)
      assert.include(error, '"detail":')
    })
  }
})

/** The parts of a call that don't depend on the client. */
const essence = ({ body, headers, method, path }: Received) => {
  const { authorization, "content-type": type, prefer } = headers
  return {
    method,
    path,
    authorization,
    prefer,
    ...(method === "GET" ? {} : { body }),
    ...(body === undefined ? {} : { type })
  }
}

/** Records a step's call by the adapter, then by the official client. */
const bothOf = (host: ReplicateHost.ReplicateHost, step: ReplicateHost.Step) =>
  Effect.all([host.heard(step), host.heard(step)])

describe("what the adapter asks of Replicate is what the official client asks", () => {
  const compare = (
    name: string,
    body: Body<
      [adapters: { readonly image: ImageAdapter; readonly video: VideoAdapter }, host: ReplicateHost.ReplicateHost],
      never
    >
  ) =>
    liveOver(services)(name, function* () {
      const { image, video } = yield* Ours.make
      if (image === undefined || video === undefined) return yield* Effect.dieMessage("half an adapter")
      return yield* effectOf(body)({ image, video }, yield* ReplicateHost.make)
    })

  for (const model of ["vendor/film", "somebody/film:4acb778eb059"]) {
    compare(`for a clip of ${model}`, function* ({ video }, host) {
      const route = { ...clipRoute(host.origin, { input: { resolution: "720p" } }), model }
      yield* video.submit(route, Videos.request())
      const value = { resolution: "720p", duration: 8, prompt: Videos.request().prompt }
      const [, version] = model.split(":")
      const what = version === undefined ? { model } : { version }
      yield* Effect.promise(() => client(host).predictions.create({ ...what, model, input: value }))
      const [ours, theirs] = yield* bothOf(host, "submit")
      assert.deepStrictEqual({ ...essence(ours), prefer: undefined }, essence(theirs))
    })
  }

  compare("for a clip's progress, and its end", function* ({ video }, host) {
    yield* host.names({ get: undefined, cancel: undefined })
    const route = clipRoute(host.origin)
    const handle = yield* video.submit(route, Videos.request())
    const { id } = JSON.parse(handle)
    yield* video.poll(route, handle)
    yield* Effect.promise(() => client(host).predictions.get(id))
    const [ours, theirs] = yield* bothOf(host, "poll")
    assert.deepStrictEqual(essence(ours), essence(theirs))
    yield* video.cancel?.(route, handle) ?? Effect.void
    yield* Effect.promise(() => client(host).predictions.cancel(id))
    const [left, cancelled] = yield* bothOf(host, "cancel")
    assert.deepStrictEqual(essence(left), essence(cancelled))
  })

  compare("for a picture", function* ({ image }, host) {
    yield* host.succeeds("data:image/png;base64,iVBORw==")
    const route = drawRoute(host.origin)
    yield* image.generate(route, Images.request())
    const value = { prompt: Images.request().prompt, resolution: "1K" }
    yield* Effect.promise(() => client(host).predictions.create({ model: route.model, input: value, wait: 30 }))
    const [ours, theirs] = yield* bothOf(host, "submit")
    assert.deepStrictEqual(essence(ours), essence(theirs))
  })
})
