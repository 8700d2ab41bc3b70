import { assert, layer as withLayer } from "@effect/vitest"
import { Effect, Option, Predicate } from "effect"
import { assertRefused, rateOf, refusals } from "../../harness/client/HttpCalls.ts"
import { imageOf, isReplay } from "../../harness/client/ImageClient.ts"
import { draw, gateway, keyed, onSecond, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { json, type Reply, silent, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, paints } from "../../harness/upstream/ImageReplies.ts"
import { Upstreams } from "../../harness/upstream/Upstreams.ts"

/** What a provider does, by the name that the route calls its model; its links lead to nothing, ever. */
const manners: Readonly<Record<string, Reply>> = {
  silent,
  halting: steps({ type: "application/json" }, '{"data":', Effect.never),
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
const slow = ["silent", "halting", "linking", "waiting"]

const served = gateway(
  {
    silent: only("silent"),
    halting: only("halting"),
    linking: only("linking"),
    waiting: { routes: [{ provider: "first", model: "silent" }, onSecond] }
  },
  { REQUEST_TIMEOUT: "4" }
)

withLayer(served, { excludeTestServices: true })("an image that takes too long", (it) => {
  it.effect("is given up in time and at no cost, and frees its key", () =>
    Effect.gen(function* () {
      const { first, second } = yield* Upstreams
      // One of them is asked for its link, too.
      yield* first.script(...[...slow, "link"].map(() => mannerly))
      const late = yield* Effect.forEach(
        slow,
        Effect.fnUntraced(function* (model) {
          const { spent, ...customer } = yield* Served.customer()
          const answer = yield* draw(customer, asked(model), keyed("k"))
          assertRefused(answer, refusals.timedOut)
          assert.isDefined(rateOf(answer))
          assert.strictEqual(yield* spent, 0n)
          const row = yield* Served.logged(answer.headers.get("x-request-id"))
          assert.deepInclude(row, { status: 504, code: "timeout", model, route: null, cost: null }, model)
          assert.deepStrictEqual(
            row.attempts.map(({ outcome }) => outcome),
            ["timeout"],
            model
          )
          return { model, customer, spent }
        }),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(first.calls, slow.length + 1)
      assert.lengthOf(second.calls, 0)

      for (const { customer, model, spent } of late) {
        yield* first.script(paints())
        const answer = yield* draw(customer, asked(model), keyed("k"))
        imageOf(answer)
        assert.isFalse(isReplay(answer))
        assert.strictEqual(yield* spent, usualPrice)
      }
    })
  )

  it.effect("leaves no call behind", () =>
    Effect.gen(function* () {
      const { first } = yield* Upstreams
      yield* Effect.forEach(first.calls.slice(0, slow.length), ({ closed }) => closed, { discard: true }).pipe(
        Effect.timeoutOption("10 seconds"),
        Effect.map(Option.isSome),
        Effect.map((areClosed) => assert.isTrue(areClosed, "a call is still open"))
      )
    })
  )
})
