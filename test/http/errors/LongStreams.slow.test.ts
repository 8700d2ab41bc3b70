import { Effect, Predicate, Struct } from "effect"
import { type ChatApi, chatApis, chatCompletions } from "../../harness/client/ChatApis.ts"
import { talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, type Reply, sse } from "../../harness/upstream/FakeUpstream.ts"
import { answers, chunk, ending, gateway, nanoPerToken, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { makeWriter } from "../../providers/Backpressure.ts"
import { open } from "../connections/RawSocket.ts"

const begun = chunk({ role: "assistant", content: "" })
const words = chunk({ content: "word ".repeat(20_000) })
const comments = Array.from({ length: 8 }, () => [Effect.sleep("500 millis"), ": still here\n\n"]).flat()
/** What a provider does, by the name that the route calls its model. */
const manners: Readonly<Record<string, () => Reply>> = {
  /** More than all buffers on the way to a client take. */
  endless: () => makeWriter(words, 64 * 1024 * 1024).reply,
  /** Has no more to say, and is silent, once it is read to the end. */
  finite: () => sse(words.repeat(160), Effect.never),
  /** Breaks the connection of who does not read. */
  impatient: () => (response, received) => {
    setTimeout(() => response.destroy(), 2_500)
    return makeWriter(words, 64 * 1024 * 1024).reply(response, received)
  },
  thinking: () => sse(begun, ...comments, chunk({ content: "fine" }), ending),
  stuck: () => sse(begun, Effect.never)
}
const mannerly: Reply = (response, received) => {
  const model = Predicate.isRecord(received.body) ? String(received.body["model"]) : ""
  return (manners[model]?.() ?? json(500, {}))(response, received)
}

/** Those of whom a client reads too little. */
const unreadModels = ["endless", "finite", "impatient"] as const
const routesTo = (model: string) => ({ routes: [{ provider: "first", model }, onSecond] })
const served = gateway(
  Object.fromEntries([...unreadModels, "thinking", "stuck"].map((model) => [model, routesTo(model)])),
  { REQUEST_TIMEOUT: "3", FIRST_BYTE_TIMEOUT: "2", IDLE_TIMEOUT: "3", STREAM_TIMEOUT: "7" }
)

withLayer(served)("a stream that takes long", (it) => {
  /** Asks, and reads nothing until shortly before the end of the stream's time, or ever; answers what is logged of it. */
  const ignore = Effect.fnUntraced(function* ({ body, path }: ChatApi, model: (typeof unreadModels)[number]) {
    const requestId = `${model}${path.replaceAll("/", "-")}`
    const { spentInTheEnd, ...customer } = yield* Served.customer()
    const connection = yield* open
    connection.socket.pause()
    const text = JSON.stringify(body({ ...talk(model), stream: true }))
    const head = `Host: x\r\nx-api-key: ${customer.secret}\r\nx-request-id: ${requestId}`
    yield* connection.write(`POST ${path} HTTP/1.1\r\n${head}\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
    if (model !== "endless")
      yield* Effect.delay(
        Effect.sync(() => connection.socket.resume()),
        "6200 millis"
      )
    const row = yield* Served.logged(requestId)
    return { row, spent: yield* spentInTheEnd }
  }, Effect.scoped)

  const ask = Effect.fnUntraced(function* ({ send }: ChatApi, model: string) {
    const { status, text, headers } = yield* send(yield* Served.customer(), { ...talk(model), stream: true })
    const { attempts } = yield* Served.logged(headers.get("x-request-id"))
    return { status, text, attempts: attempts.map(Struct.pick("route", "outcome")) }
  })

  const assertPaid = ({ row, spent }: Effect.Effect.Success<ReturnType<typeof ignore>>) => {
    const { attempts, charge, code, completionTokens, promptTokens, status } = row
    assert.deepStrictEqual([row.model, status, code], [row.model, 499, "client_closed"])
    assert.isAbove(completionTokens ?? 0, 1_000)
    const { completion, prompt } = nanoPerToken
    assert.strictEqual(charge, BigInt(promptTokens ?? 0) * prompt + BigInt(completionTokens ?? 0) * completion)
    assert.strictEqual(spent, charge)
    assert.deepStrictEqual(attempts.map(Struct.get("outcome")), ["ok"])
  }

  it.effect("is ended by who keeps whom waiting", function* () {
    const { first, second } = yield* Upstreams
    yield* first.script(...Array.from({ length: 3 * chatApis.length }, () => mannerly))
    yield* second.script(...chatApis.map(() => answers()))
    const each = yield* Effect.forEach(
      chatApis,
      (way) =>
        Effect.all([ignore(way, "endless"), ask(way, "thinking"), ask(way, "stuck")], { concurrency: "unbounded" }),
      { concurrency: "unbounded" }
    )
    for (const [unread, thinking, stuck] of each) {
      assertPaid(unread)
      assert.deepStrictEqual(thinking.attempts, [{ route: "thinking@first", outcome: "ok" }])
      assert.include(thinking.text, "fine")
      assert.deepStrictEqual(stuck.attempts, [
        { route: "stuck@first", outcome: "timeout" },
        { route: "stuck@second", outcome: "ok" }
      ])
      assert.include(stuck.text, "fine")
    }
  })

  it.effect("is paid by who lets it wait until it ends", function* () {
    const { first } = yield* Upstreams
    yield* first.script(mannerly, mannerly)
    const late = yield* Effect.all([ignore(chatCompletions, "finite"), ignore(chatCompletions, "impatient")], {
      concurrency: "unbounded"
    })
    late.forEach(assertPaid)
  })
})
