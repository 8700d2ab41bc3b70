import { Effect, type Scope } from "effect"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import { makeMock } from "../../contracts/ChatHosts.ts"
import { type Fault, secret, services } from "../../contracts/MediaHarness.ts"
import { type Harness, type Host, unseen } from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { dataUri } from "../jobs/Hosts.ts"
import { videoRoute } from "./Hosts.ts"

/** Aimock's error format. */
const aimockErrors = {
  limit: { status: 429, error: { message: "Slow down", type: "rate_limit_error" } },
  funds: { status: 403, error: { message: "Exhausted balance", type: "billing" } },
  key: { status: 401, error: { message: "Bad key" } },
  request: { status: 422, error: { message: "Too long" } },
  moderation: { status: 422, error: { message: "No", type: "content_policy_violation" } },
  server: { status: 500, error: { message: "Sorry" } },
  missing: { status: 404, error: { message: "No such app" } }
} as const
const isError = (fault: Fault): fault is keyof typeof aimockErrors => fault in aimockErrors

/**
 * The same in the words of an independent fake. It counts how often it was asked: a job runs from the second question
 * on and is done at the third; what it gives in the end is settled when the job is taken.
 */
const host: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const files = yield* Fake.make
  const mock = yield* makeMock(secret, { falQueue: { pollsBeforeInProgress: 2, pollsBeforeCompleted: 3 } })
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture })
  const result: { video: { url: string } } = { video: { url: "" } }
  next({ response: { json: result, status: 200 } })
  const headers = { "x-fal-target-host": "queue.fal.run" }
  const route = videoRoute(`${mock.url}/fal`, headers)
  const called = (path: RegExp) => mock.getRequests().filter((entry) => path.test(entry.path))
  let looked = 0
  return {
    route,
    received: Effect.sync(() => {
      const body = called(/(text|image)-to-video$/)[looked++]?.body
      const [message] = Array.isArray(body?.messages) ? body.messages : []
      const prompt = message?.content
      return {
        model: String(body?.model),
        prompt: typeof prompt === "string" ? prompt : "",
        seconds: unseen,
        reference: unseen,
        credential: unseen
      }
    }),
    start: Effect.void,
    finish: ({ bytes, where }) =>
      Effect.gen(function* () {
        const reply = Fake.steps({ type: "video/mp4" }, bytes)
        yield* files.script(reply, reply)
        result.video.url = where === "inside" ? dataUri("video/mp4", bytes) : `${files.url}/clip.mp4`
      }),
    endBy: () => Effect.dieMessage("aimock's jobs do not fail"),
    fail: (_, fault) =>
      Effect.suspend(() => {
        if (!isError(fault)) return Effect.dieMessage(`aimock does not know ${fault}`)
        return Effect.sync(() => next({ response: { ...aimockErrors[fault], retryAfter: 7 } }))
      }),
    fetched: Effect.map(files.received, ({ headers: came }) => came.authorization),
    cancelled: Effect.sync(() => {
      if (called(/\/cancel$/).length === 0) throw new Error("nothing was cancelled")
    })
  }
})

export const aimockHarness: Harness = {
  name: "fal-queue on aimock",
  make: FalQueue.make,
  services,
  host,
  faults: { submit: ["limit", "funds", "key", "request", "moderation", "server", "missing"], poll: [], result: [] },
  endings: [],
  where: ["elsewhere", "inside"]
}
