import { Effect, Logger } from "effect"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import * as FalResponse from "../../../src/providers/fal-queue/FalQueue.ts"
import { type JobFormat, makeJobAdapters } from "../../../src/providers/jobs/JobAdapter.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import * as ReplicateResponse from "../../../src/providers/replicate/Replicate.ts"
import * as Images from "../../contracts/ImageHarness.ts"
import { services } from "../../contracts/MediaHarness.ts"
import { request } from "../../contracts/VideoHarness.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as FalHost from "../fal-queue/FalHost.ts"
import { account, imageRoute, videoRoute } from "../fal-queue/Hosts.ts"
import { clipRoute, replicateAccount } from "../replicate/Hosts.ts"
import * as ReplicateHost from "../replicate/ReplicateHost.ts"
import { hurriedServices } from "./Hosts.ts"

const fal = account("https://queue.fal.run")
const replicate = replicateAccount("https://api.replicate.com")
const answer = (body: unknown) => ({ status: 200, headers: {}, body: JSON.stringify(body) })

describe("the status of a job", () => {
  for (const status of ["FAILED", "failed", "Failure", "ERROR", "CANCELLED", "canceled", "Cancelled", "ABORTED"]) {
    it(`${status} is a failure`, () => {
      const found = [
        FalResponse.decodeProgress(fal, answer({ status })),
        ReplicateResponse.decodeProgress(replicate, answer({ status, error: null }))
      ]
      for (const progress of found) {
        if (progress?.state !== "failed") return assert.fail(progress?.state)
        assert.strictEqual(progress.failure.class, "retry")
      }
    })
  }

  it("FAILED of a fal host is what its error says", () => {
    const detail = [{ type: "content_policy_violation", loc: ["body", "prompt"], msg: "No." }]
    const progress = FalResponse.decodeProgress(fal, answer({ status: "FAILED", detail }))
    assert.strictEqual(progress?.state === "failed" && progress.failure.class, "moderation")
  })

  it("is queued or in progress by each host's own words", () => {
    const states = [
      FalResponse.decodeProgress(fal, answer({ status: "IN_QUEUE" })),
      FalResponse.decodeProgress(fal, answer({ status: "IN_PROGRESS" })),
      ReplicateResponse.decodeProgress(replicate, answer({ status: "starting" })),
      ReplicateResponse.decodeProgress(replicate, answer({ status: "processing" }))
    ].map((progress) => progress?.state)
    assert.deepStrictEqual(states, ["queued", "in_progress", "queued", "in_progress"])
  })

  const hosts = {
    "fal-queue": Effect.map(FalHost.make, (host) => ({
      format: FalQueue.format,
      route: videoRoute(host.url),
      stands: host.stands
    })),
    replicate: Effect.map(ReplicateHost.make, (host) => ({
      format: Replicate.format,
      route: clipRoute(host.origin),
      stands: host.stands
    }))
  }
  for (const [name, make] of Object.entries(hosts)) {
    it.scopedLive(`that ${name} does not know leaves the job in progress, and is logged once`, () => {
      const lines: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => lines.push(`${logLevel.label} ${String(message)}`))
      return Effect.gen(function* () {
        const { format, route, stands } = yield* make
        const { video } = yield* makeJobAdapters(format)
        const handle = yield* video.submit(route, request())
        for (const status of ["paused", "paused", "warm"]) {
          yield* stands(status)
          assert.deepStrictEqual(yield* video.poll(route, handle), { state: "in_progress" })
        }
        assert.lengthOf(lines, 2)
        assert.match(lines[0] ?? "", /^WARN .*\bpaused\b/)
        assert.match(lines[1] ?? "", /^WARN .*\bwarm\b/)
      }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)), Effect.provide(services))
    })
  }
})

describe("a job's decoder that throws", () => {
  const thrower = (): never => {
    throw new TypeError("secret output")
  }
  const adaptersOf = (changes: Partial<JobFormat>) => makeJobAdapters({ ...FalQueue.format, ...changes })
  const check = (name: string, body: (host: FalHost.FalHost) => ReturnType<typeof chatRequest>) =>
    it.scopedLive(name, () => Effect.flatMap(FalHost.make, body).pipe(Effect.provide(hurriedServices)))
  const chatRequest = Effect.fnUntraced(function* (changes: Partial<JobFormat>, host: FalHost.FalHost) {
    const { video } = yield* adaptersOf({})
    const broken = yield* adaptersOf(changes)
    const route = videoRoute(host.url)
    yield* host.ends({})
    const failure = yield* Effect.flip(broken.video.poll(route, yield* video.submit(route, request())))
    assert.deepStrictEqual([failure.class, failure.status], ["retry", 200])
    assert.include(failure.detail, "TypeError")
    assert.notInclude(failure.detail, "secret")
  })

  check("fails the poll", (host) => chatRequest({ decodeProgress: thrower }, host))
  check("fails the result", (host) => chatRequest({ decodeResult: thrower }, host))
  check("fails the result by its refusal", (host) => chatRequest({ decodeFailure: thrower }, host))

  liveOver(services)("leaves it unknown whether a submit was taken", function* () {
    const host = yield* FalHost.make
    const { video } = yield* adaptersOf({ decodeHandle: thrower })
    const failure = yield* Effect.flip(video.submit(videoRoute(host.url), request()))
    assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["network", undefined, undefined])
  })

  liveOver(services)("fails a submit by its refusal, for another route to take over", function* () {
    const host = yield* FalHost.make
    const { video } = yield* adaptersOf({ decodeFailure: thrower })
    yield* host.meets("submit", Fake.json(422, {}))
    const failure = yield* Effect.flip(video.submit(videoRoute(host.url), request()))
    assert.deepStrictEqual([failure.class, failure.status], ["retry", 422])
  })

  liveOver(hurriedServices)("fails a picture, whose job is then cancelled", function* () {
    const host = yield* FalHost.make
    const { image } = yield* adaptersOf({ decodeProgress: thrower })
    const failure = yield* Effect.flip(image.generate(imageRoute(host.url), Images.request()))
    assert.strictEqual(failure.class, "retry")
    yield* host.heard("cancel")
  })
})
