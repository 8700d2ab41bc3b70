import { Effect, Predicate, Struct } from "effect"
import { type ChatWay, chatWays } from "../../harness/client/ChatWays.ts"
import { talk } from "../../harness/client/HttpCalls.ts"
import { open } from "../../harness/client/RawSocket.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply, sse } from "../../harness/upstream/FakeUpstream.ts"
import { answers, chunk, ending, gateway, nanoPerToken, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { makeWriter } from "../../providers/Backpressure.ts"

const begun = chunk({ role: "assistant", content: "" })
const comments = Array.from({ length: 8 }, () => [Effect.sleep("500 millis"), ": still here\n\n"]).flat()
/** What a provider does, by the name that the route calls its model. */
const manners: Readonly<Record<string, () => Reply>> = {
  /** More than all buffers on the way to a client take. */
  endless: () => makeWriter(chunk({ content: "word ".repeat(20_000) }), 64 * 1024 * 1024).reply,
  thinking: () => sse(begun, ...comments, chunk({ content: "fine" }), ending),
  stuck: () => sse(begun, Effect.never)
}
const mannerly: Reply = (response, received) => {
  const model = Predicate.isRecord(received.body) ? String(received.body["model"]) : ""
  return (manners[model]?.() ?? json(500, {}))(response, received)
}

const routesTo = (model: string) => ({ routes: [{ provider: "first", model }, onSecond] })
const served = gateway(
  { endless: routesTo("endless"), thinking: routesTo("thinking"), stuck: routesTo("stuck") },
  { REQUEST_TIMEOUT: "3", FIRST_BYTE_TIMEOUT: "2", IDLE_TIMEOUT: "3", STREAM_TIMEOUT: "7" }
)

withLayer(served)("a stream that takes long", (it) => {
  /** Asks and never reads; answers what is logged of it. */
  const ignore = Effect.fnUntraced(function* ({ body, path }: ChatWay) {
    const requestId = `unread${path.replaceAll("/", "-")}`
    const { spentInTheEnd, ...customer } = yield* Served.customer()
    const connection = yield* open
    connection.socket.pause()
    const text = JSON.stringify(body({ ...talk("endless"), stream: true }))
    const head = `Host: x\r\nx-api-key: ${customer.secret}\r\nx-request-id: ${requestId}`
    yield* connection.write(`POST ${path} HTTP/1.1\r\n${head}\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
    const row = yield* Served.logged(requestId)
    return { row, spent: yield* spentInTheEnd }
  }, Effect.scoped)

  const ask = Effect.fnUntraced(function* ({ send }: ChatWay, model: string) {
    const { status, text, headers } = yield* send(yield* Served.customer(), { ...talk(model), stream: true })
    const { attempts } = yield* Served.logged(headers.get("x-request-id"))
    return { status, text, attempts: attempts.map(Struct.pick("route", "outcome")) }
  })

  it.effect("is ended by who keeps whom waiting", function* () {
    const { first, second } = yield* Upstreams
    yield* first.script(...Array.from({ length: 3 * chatWays.length }, () => mannerly))
    yield* second.script(...chatWays.map(() => answers()))
    const each = yield* Effect.forEach(
      chatWays,
      (way) => Effect.all([ignore(way), ask(way, "thinking"), ask(way, "stuck")], { concurrency: "unbounded" }),
      { concurrency: "unbounded" }
    )
    for (const [unread, thinking, stuck] of each) {
      const { charge, code, completionTokens, promptTokens, status } = unread.row
      assert.deepStrictEqual([status, code], [499, "client_closed"])
      assert.isAbove(completionTokens ?? 0, 1_000)
      const { completion, prompt } = nanoPerToken
      assert.strictEqual(charge, BigInt(promptTokens ?? 0) * prompt + BigInt(completionTokens ?? 0) * completion)
      assert.strictEqual(unread.spent, charge)
      assert.deepStrictEqual(unread.row.attempts.map(Struct.get("outcome")), ["ok"])
      assert.deepStrictEqual(thinking.attempts, [{ route: "thinking@first", outcome: "ok" }])
      assert.include(thinking.text, "fine")
      assert.deepStrictEqual(stuck.attempts, [
        { route: "stuck@first", outcome: "timeout" },
        { route: "stuck@second", outcome: "ok" }
      ])
      assert.include(stuck.text, "fine")
    }
  })
})
