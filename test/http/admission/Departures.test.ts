import { Deferred, Effect } from "effect"
import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import { type ChatApi, chatApis } from "../../harness/client/ChatApis.ts"
import { call, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { type Reply, silent, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  chunk,
  completion,
  ending,
  gateway,
  nanoPerToken,
  onFirst,
  onSecond,
  Upstreams,
  usual,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"
import { open } from "../connections/RawSocket.ts"

const told = "one two three"
const served = gateway({ leaving: { routes: [onFirst, onSecond] } })

withLayer(served)("a client that leaves", (it) => {
  /** Asks, leaves once `when` has come true, and answers what the log says. */
  const leaving = Effect.fnUntraced(function* (
    { body: bodyOf, path }: ChatApi,
    what: string,
    chat: object,
    reply: Reply,
    when: (received: string) => boolean,
    afterwards: Effect.Effect<unknown> = Effect.void
  ) {
    const requestId = `${what}${path.replaceAll("/", "-")}`
    const { first } = yield* Upstreams
    const { spent, ...customer } = yield* Served.customer()
    const calls = first.calls.length
    yield* first.script(reply)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const connection = yield* open
        const json = JSON.stringify(bodyOf(chat))
        yield* connection.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${customer.secret}\r\nx-request-id: ${requestId}\r\nContent-Length: ${json.length}\r\n\r\n${json}`
        )
        yield* soon(
          Effect.sync(() => {
            assert.lengthOf(first.calls, calls + 1)
            assert.isTrue(when(connection.received()), connection.received())
          })
        )
      })
    )
    // Later connections are seen later: after these the gateway knows that the one above has gone.
    for (let turn = 0; turn < 3; turn++) yield* call("/healthz")
    yield* afterwards
    yield* soon(Effect.map(call("/metrics"), ({ text }) => assert.match(text, /^gateway_in_flight(\{\})? 0$/m)))
    const row = yield* Served.logged(requestId)
    assert.deepInclude(row, { status: 499, code: "client_closed", orgId: customer.org, model: "leaving" })
    assert.strictEqual(yield* spent, row.charge)
    return { row, call: first.calls[calls] }
  })

  for (const way of chatApis) {
    describe(way.path, () => {
      it.effect("before a JSON answer is charged by the usage of the finished call", function* () {
        const gate = yield* Deferred.make<void>()
        const { row } = yield* leaving(
          way,
          "row-left-json",
          talk("leaving"),
          steps(
            { type: "application/json" },
            Deferred.await(gate),
            JSON.stringify({ ...completion(told), usage: usual })
          ),
          () => true,
          Deferred.succeed(gate, undefined)
        )
        assert.deepInclude(row, {
          charge: NanoUsd(usualCharge),
          route: "leaving@first",
          notes: [],
          promptTokens: 10,
          completionTokens: 5
        })
      })

      it.effect("in the middle of a stream is charged for the output so far", function* () {
        const { first } = yield* Upstreams
        const { row } = yield* leaving(
          way,
          "row-left-stream",
          { ...talk("leaving"), stream: true },
          sse(chunk({ content: told }), Effect.never, ending),
          (received) => received.includes(told),
          Effect.suspend(() => first.calls.at(-1)?.closed ?? Effect.never)
        )
        const { charge, completionTokens, notes, promptTokens } = row
        if (promptTokens === null || completionTokens === null) return assert.fail("nothing was counted")
        assert.deepStrictEqual(notes, ["usage_estimated"])
        assert.isAbove(promptTokens, 0)
        assert.isAbove(completionTokens, 0)
        const { completion: output, prompt } = nanoPerToken
        assert.strictEqual(charge, BigInt(promptTokens) * prompt + BigInt(completionTokens) * output)
      })

      it.effect("before a stream's first output is charged nothing", function* () {
        const { call: made, row } = yield* leaving(
          way,
          "row-left-early",
          { ...talk("leaving"), stream: true },
          silent,
          () => true
        )
        yield* Effect.timeout(made?.closed ?? Effect.never, "5 seconds")
        assert.deepInclude(row, {
          charge: zero,
          promptTokens: null,
          completionTokens: null,
          notes: [],
          firstByteMs: null
        })
      })
    })
  }
})
