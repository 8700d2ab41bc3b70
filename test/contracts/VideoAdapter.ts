import { Effect, Fiber, Stream } from "effect"
import type { SecondsAs } from "../../src/domain/Model.ts"
import {
  type FailureClass,
  mayDependOnRequest,
  type ProviderFailure,
  type VideoAdapter,
  type VideoHandle
} from "../../src/services/routing/Provider.ts"
import { assert, describe } from "../harness/It.ts"
import { base64, checksOf, type Fault, meaning, secret, unread } from "./MediaHarness.ts"
import { bytes, type Ending, type Harness, type Host, request, type Step, unseen } from "./VideoHarness.ts"

/** Responses after which nobody knows whether the job was taken. */
const doubtful: ReadonlyArray<Fault> = unread

const endings: Readonly<Record<Ending, FailureClass>> = {
  request: "request",
  image: "request",
  moderation: "moderation",
  flagged: "moderation",
  runner: "retry",
  "deep error": "retry",
  "no clip": "retry",
  server: "retry",
  "error beside": "retry",
  "moderation beside": "moderation"
}

const written: ReadonlyArray<[SecondsAs, unknown]> = [
  ["number", 8],
  ["text", "8"],
  ["suffixed", "8s"],
  ["omitted", undefined]
]

const reference = { type: "image/jpeg", bytes: bytes(5_000, 3) } as const

/** Asks until the render is done, as often as a host may need that counts the questions. */
const done = (adapter: VideoAdapter, host: Host, handle: VideoHandle) =>
  adapter.poll(host.route, handle).pipe(
    Effect.repeat({ until: ({ state }) => state === "done", times: 5 }),
    Effect.map(({ state }) => assert.strictEqual(state, "done"))
  )

const downloaded = (adapter: VideoAdapter, host: Host, handle: VideoHandle) =>
  Effect.map(Stream.runCollect(adapter.download(host.route, handle)), (chunks) => base64(Buffer.concat([...chunks])))

const discreet = (failure: ProviderFailure) => {
  assert.notInclude(failure.detail, secret)
  assert.notStrictEqual(failure.detail, "")
}

/** What every video adapter owes the gateway, against any host that can be scripted. */
export const videoAdapterContract = (harness: Harness) =>
  describe(`a video adapter: ${harness.name}`, () => {
    const check = checksOf(harness, ({ video }) => video)
    const clip = { bytes: bytes(10_000), where: harness.where[0] ?? "inside" } as const

    check("a prompt gives a clip, from submit to bytes", function* (adapter, host) {
      const prompt = 'Grüße aus Zürich, "你好" 👋\r\nline two\\ & <more>'
      const handle = yield* adapter.submit(host.route, request({ prompt }))
      assert.notInclude(handle, secret)
      assert.doesNotThrow(() => JSON.parse(handle))
      const sent = yield* host.received
      assert.deepStrictEqual([sent.model, sent.prompt], [host.route.model, prompt])
      if (sent.reference !== unseen) assert.isUndefined(sent.reference)
      if (typeof sent.credential === "string") assert.include(sent.credential, secret)
      assert.deepStrictEqual(yield* adapter.poll(host.route, handle), { state: "queued" })
      yield* host.start
      assert.strictEqual((yield* adapter.poll(host.route, handle)).state, "in_progress")
      yield* host.finish(clip)
      assert.deepStrictEqual(yield* adapter.poll(host.route, handle), { state: "done" })
      assert.strictEqual(yield* downloaded(adapter, host, handle), base64(clip.bytes))
      assert.deepStrictEqual(yield* adapter.poll(host.route, handle), { state: "done" }, "asking changes nothing")
      assert.strictEqual(yield* downloaded(adapter, host, handle), base64(clip.bytes))
    })

    check("a reference is rendered by the route's own model for it", function* (adapter, host) {
      yield* adapter.submit(host.route, request({ reference }))
      const sent = yield* host.received
      assert.strictEqual(sent.model, host.route.imageModel)
      if (typeof sent.reference === "symbol") return
      assert.strictEqual(sent.reference?.type, reference.type)
      assert.strictEqual(base64(sent.reference?.bytes ?? Buffer.alloc(0)), base64(reference.bytes))
    })

    for (const [secondsAs, seconds] of written) {
      check(`a length as ${secondsAs}`, function* (adapter, host) {
        yield* adapter.submit({ ...host.route, secondsAs }, request({ seconds: 8 }))
        const sent = yield* host.received
        if (sent.seconds !== unseen) assert.strictEqual(sent.seconds, seconds)
      })
    }

    check("a route without references takes none, and does not ask its host", function* (adapter, host) {
      const route = { ...host.route, imageModel: undefined }
      const failure = yield* Effect.flip(adapter.submit(route, request({ reference })))
      assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["retry", undefined, true])
    })

    check("a render of an unknown state is not over", function* (adapter, host) {
      if (host.stray === undefined) return
      const handle = yield* adapter.submit(host.route, request())
      yield* host.stray
      const { state } = yield* adapter.poll(host.route, handle)
      assert.include(["queued", "in_progress"], state)
    })

    for (const fault of harness.faults.submit) {
      check(`a submit meets ${fault}`, function* (adapter, host) {
        yield* host.fail("submit", fault)
        const given = fault === "image" ? request({ reference }) : request()
        const failure = yield* Effect.flip(adapter.submit(host.route, given))
        discreet(failure)
        if (doubtful.includes(fault)) {
          assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["network", undefined, undefined])
          assert.isTrue(mayDependOnRequest(failure))
          return
        }
        assert.strictEqual(failure.class, meaning[fault])
        assert.isNumber(failure.status)
        if (fault === "limit") assert.deepStrictEqual([failure.status, failure.retryAfterSeconds], [429, 7])
        assert.strictEqual(failure.param, fault === "image" ? "image" : undefined)
      })
    }

    for (const step of ["poll", "result"] as const) {
      for (const fault of harness.faults[step]) {
        check(`the ${step} meets ${fault}, which is no news of the render`, function* (adapter, host) {
          const handle = yield* adapter.submit(host.route, request())
          if (step === "result") yield* host.finish(clip)
          yield* host.fail(step, fault)
          const failure = yield* Effect.flip(adapter.poll(host.route, handle))
          discreet(failure)
          assert.strictEqual(failure.class, meaning[fault])
          yield* host.finish(clip)
          assert.deepStrictEqual(yield* adapter.poll(host.route, handle), { state: "done" })
        })
      }
    }

    for (const ending of harness.endings) {
      check(`a render ends by ${ending}`, function* (adapter, host) {
        const handle = yield* adapter.submit(host.route, request())
        yield* host.endBy(ending)
        const progress = yield* adapter.poll(host.route, handle)
        if (progress.state !== "failed") return assert.fail(progress.state)
        discreet(progress.failure)
        assert.strictEqual(progress.failure.class, endings[ending])
        assert.strictEqual(progress.failure.param, ending === "image" ? "image" : undefined)
        const failure = yield* Effect.flip(downloaded(adapter, host, handle))
        if (!ending.endsWith("beside")) assert.strictEqual(failure.class, endings[ending])
      })
    }

    for (const where of harness.where) {
      check(`a clip of several megabytes, ${where}`, function* (adapter, host) {
        const large = { bytes: bytes(5_000_001, 5), where }
        const handle = yield* adapter.submit(host.route, request())
        yield* host.finish(large)
        yield* done(adapter, host, handle)
        assert.strictEqual(yield* downloaded(adapter, host, handle), base64(large.bytes))
        if (where === "inside") return
        const credential = yield* host.fetched
        if (where === "own") assert.include(credential, secret)
        else assert.isUndefined(credential, "the credential stays with the route's own origin")
      })
    }

    check("a download before the render is done is a failure", function* (adapter, host) {
      const handle = yield* adapter.submit(host.route, request())
      assert.strictEqual((yield* Effect.flip(downloaded(adapter, host, handle))).class, "retry")
    })

    for (const how of ["missing", "server", "cut"] as const) {
      check(`a download meets ${how}`, function* (adapter, host) {
        if (host.serve === undefined) return
        const handle = yield* adapter.submit(host.route, request())
        yield* host.finish({ ...clip, where: "own" })
        yield* host.serve(how)
        const failure = yield* Effect.flip(downloaded(adapter, host, handle))
        discreet(failure)
        assert.strictEqual(failure.class, how === "cut" ? "network" : "retry")
      })
    }

    check("a broken handle fails without a request", function* (adapter, host) {
      for (const handle of ["", "null", "{}", '{"id":1}', "no JSON"]) {
        const failures = [
          yield* Effect.flip(adapter.poll(host.route, handle)),
          yield* Effect.flip(downloaded(adapter, host, handle)),
          ...(adapter.cancel === undefined ? [] : [yield* Effect.flip(adapter.cancel(host.route, handle))])
        ]
        for (const failure of failures) assert.deepStrictEqual([failure.class, failure.status], ["retry", undefined])
      }
    })

    check("a render can be cancelled, also one that is over", function* (adapter, host) {
      if (adapter.cancel === undefined) return
      const handle = yield* adapter.submit(host.route, request())
      yield* adapter.cancel(host.route, handle)
      yield* host.cancelled
      yield* host.finish(clip)
      yield* adapter.cancel(host.route, handle)
    })

    check("interrupting a call closes its connection", function* (adapter, host) {
      const { hold, route } = host
      if (hold === undefined) return
      const cut = Effect.fnUntraced(function* (step: Step, call: Effect.Effect<unknown, unknown>) {
        const { arrived, gone } = yield* hold(step)
        const calling = yield* Effect.fork(call)
        yield* arrived
        yield* Fiber.interrupt(calling)
        yield* gone
      })
      yield* cut("submit", adapter.submit(route, request()))
      const handle = yield* adapter.submit(route, request())
      yield* cut("poll", adapter.poll(route, handle))
      yield* host.finish(clip)
      yield* cut("result", adapter.poll(route, handle))
      yield* cut("result", downloaded(adapter, host, handle))
      assert.strictEqual(yield* downloaded(adapter, host, handle), base64(clip.bytes))
    })
  })
