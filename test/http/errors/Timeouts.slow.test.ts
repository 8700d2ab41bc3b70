import type { AddressInfo } from "node:net"
import { Effect, Option, Predicate } from "effect"
import { makeNodeServer } from "../../../src/http/server/NodeServer.ts"
import * as RequestReporterFake from "../../fakes/RequestReporterFake.ts"
import { type ChatApi, chatApis } from "../../harness/client/ChatApis.ts"
import {
  type Answer,
  assertRefused,
  badRequest,
  chatPath,
  rateOf,
  refusals,
  talk
} from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/MediaClient.ts"
import { draw, keyed, gatewayProcess as ofImages, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { json, type Reply, silent, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, paints } from "../../harness/upstream/Replies.ts"
import { answers, chunk, gatewayProcess, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { answersIn, openTo } from "../connections/RawSocket.ts"

/** What a provider does, by the name that the route calls its model. */
const manners: Readonly<Record<string, Reply>> = {
  silent,
  quick: answers(),
  halting: steps({ type: "application/json" }, '{"choices":', Effect.never),
  mute: sse(": nothing yet\n\n", Effect.never),
  stalling: sse(chunk({ content: "Servus" }), Effect.never),
  endless: sse(
    chunk({ content: "Servus" }),
    ...Array.from({ length: 40 }, () => [Effect.sleep("200 millis"), ": still here\n\n"]).flat()
  ),
  /** Its link leads to nothing, ever. */
  linking: (response, received) =>
    json(200, { data: [{ url: `http://${received.headers.host}/never` }] })(response, received)
}

const mannerly: Reply = (response, received) => {
  const { body } = received
  const reply = Predicate.isRecord(body) ? manners[String(body["model"])] : silent
  if (reply === undefined) throw new Error("no such manner")
  return reply(response, received)
}

const only = (model: string) => ({ routes: [{ provider: "first", model }] })
const pair = (model: string, next: string) => ({
  routes: [...only(model).routes, { provider: "second", model: next, preference: 2 }]
})

const chats = gatewayProcess(
  {
    silent: only("silent"),
    halting: only("halting"),
    mute: only("mute"),
    stalling: only("stalling"),
    endless: only("endless"),
    "silent-json": pair("silent", "quick"),
    "silent-quick": pair("silent", "quick"),
    "mute-quick": pair("mute", "quick"),
    "silent-silent": pair("silent", "silent")
  },
  { REQUEST_TIMEOUT: "3", FIRST_BYTE_TIMEOUT: "1", IDLE_TIMEOUT: "1.5", STREAM_TIMEOUT: "4" }
)
const images = ofImages(
  {
    silent: only("silent"),
    halting: only("halting"),
    linking: only("linking"),
    waiting: pair("silent", "quick")
  },
  { REQUEST_TIMEOUT: "4" }
)

type Judge = (answer: Answer, way: ChatApi) => void

const isLate = (answer: Answer, way: Pick<ChatApi, "assertRefused"> = { assertRefused }) => {
  way.assertRefused(answer, refusals.timedOut)
  assert.isDefined(rateOf(answer))
}
const isServed: Judge = (answer) => {
  assert.strictEqual(answer.status, 200)
  assert.include(answer.text, "fine")
}
const isCut: Judge = (answer, { assertBroken }) => {
  assertBroken(answer, refusals.timedOut)
  assert.include(answer.text, '"Servus"')
}

const all: ReadonlyArray<readonly [model: string, stream: boolean, judge: Judge, second: number, code: string | null]> =
  [
    ["silent", false, isLate, 0, "timeout"],
    ["halting", false, isLate, 0, "timeout"],
    ["silent-json", false, isLate, 0, "timeout"],
    ["silent", true, isLate, 0, "timeout"],
    ["mute", true, isLate, 0, "timeout"],
    ["silent-quick", true, isServed, 1, null],
    ["mute-quick", true, isServed, 1, null],
    ["silent-silent", true, isLate, 1, "timeout"],
    ["stalling", true, isCut, 0, "stream_error"],
    ["endless", true, isCut, 0, "stream_error"]
  ]
/** What of it does not depend on who asks is asked for once. */
const once: ReadonlySet<string> = new Set(["halting", "silent-json", "mute-quick", "silent-silent"])
const cases = chatApis.flatMap((way) =>
  all.filter(([model]) => way.path === chatPath || !once.has(model)).map((each) => [way, ...each] as const)
)

/** The gateway's own server with shorter timeouts; it still checks its connections every five seconds. */
const hurried = Effect.acquireRelease(
  Effect.tap(Effect.provide(makeNodeServer, RequestReporterFake.layer), (server) => {
    server.headersTimeout = 200
    server.requestTimeout = 200
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
).pipe(
  Effect.flatMap((server) =>
    Effect.async<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address: AddressInfo | string | null = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed(`http://127.0.0.1:${port}`))
      })
    })
  )
)

const slow = [
  "GET /v1/models HTTP/1.1\r\nHo",
  "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123"
]

/** No call to a provider outlives its request. */
const assertOver = Effect.gen(function* () {
  const { first } = yield* Upstreams
  yield* Effect.forEach(first.calls, ({ closed }) => closed, { discard: true }).pipe(
    Effect.timeoutOption("10 seconds"),
    Effect.map(Option.isSome),
    Effect.map((areClosed) => assert.isTrue(areClosed, "a call is still open"))
  )
})

withLayer(chats)("a chat that takes too long", (it) => {
  describe.concurrent("all of these wait, together", () => {
    it.effect("ends its provider call at the deadline, at no charge", function* () {
      const { first, second } = yield* Upstreams
      yield* first.script(...cases.map(() => mannerly))
      yield* second.script(...cases.map(() => mannerly))
      yield* Effect.forEach(
        cases,
        ([way, model, stream, judge, tries, code]) =>
          Effect.gen(function* () {
            const { spent, ...customer } = yield* Served.customer()
            const answer = yield* way.send(customer, { ...talk(model), stream })
            judge(answer, way)
            assert.strictEqual((yield* spent) > 0n, code === null, model)
            const row = yield* Served.logged(answer.headers.get("x-request-id"))
            assert.deepInclude(row, { status: answer.status, code, model }, model)
            assert.lengthOf(row.attempts, tries + 1, model)
            assert.strictEqual(row.attempts[0]?.outcome, "timeout", model)
          }),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(first.calls, cases.length)
      assert.lengthOf(second.calls, cases.filter(([, , , , tries]) => tries > 0).length)
    })

    it.scoped("is refused in the envelope and its connection closed when its request arrives too slowly", function* () {
      const url = yield* hurried
      yield* Effect.forEach(
        slow,
        (start) =>
          Effect.gen(function* () {
            const connection = yield* openTo(url)
            yield* connection.write(start)
            const [refusal, ...more] = answersIn(yield* connection.closed)
            if (refusal === undefined) return assert.fail(`nothing was answered to ${start}`)
            assertRefused(refusal, badRequest("The request was not received in time."))
            assert.isEmpty(more)
          }),
        { concurrency: "unbounded" }
      )
    })
  })

  it.effect("leaves no provider call behind", () => assertOver)
})

withLayer(images)("an image that takes too long", (it) => {
  it.effect("ends at the deadline at no charge and frees its idempotency key", function* () {
    const { first, second } = yield* Upstreams
    const models = ["silent", "halting", "linking", "waiting"]
    // One of them is asked for its link, too.
    yield* first.script(...[...models, "link"].map(() => mannerly))
    const late = yield* Effect.forEach(
      models,
      Effect.fnUntraced(function* (model) {
        const { spent, ...customer } = yield* Served.customer()
        const answer = yield* draw(customer, asked(model), keyed("k"))
        isLate(answer)
        assert.strictEqual(yield* spent, 0n)
        const { attempts, ...row } = yield* Served.logged(answer.headers.get("x-request-id"))
        assert.deepInclude(row, { status: 504, code: "timeout", model, route: null, cost: null }, model)
        assert.deepStrictEqual([attempts[0]?.outcome, attempts.length], ["timeout", 1], model)
        return { model, customer, spent }
      }),
      { concurrency: "unbounded" }
    )
    assert.lengthOf(first.calls, models.length + 1)
    assert.lengthOf(second.calls, 0)
    yield* assertOver

    for (const { customer, model, spent } of late) {
      yield* first.script(paints())
      const answer = yield* draw(customer, asked(model), keyed("k"))
      imageOf(answer)
      assert.isFalse(isReplay(answer))
      assert.strictEqual(yield* spent, usualPrice)
    }
  })
})
