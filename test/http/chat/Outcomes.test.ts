import { chatApis } from "../../harness/client/ChatApis.ts"
import { assertRefused, chat, refusals, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { cut, done, event, type Step, sse } from "../../harness/upstream/FakeUpstream.ts"
import { answers, chunk, gateway, onFirst, onSecond } from "../../harness/upstream/Upstreams.ts"
import { asking as askingOf, assertChatServed, error, failing } from "../errors/ProviderFailures.ts"

const asking = askingOf(chat)
const served = gateway({
  weak: {},
  shared: {},
  shut: {},
  // Each opens its circuit with its last.
  ...Object.fromEntries(chatApis.map(({ path }) => [`breaking${path}`, { routes: [onFirst, onSecond] }])),
  "weak-pair": { routes: [onFirst, onSecond] },
  narrow: {
    capabilities: ["tools", "response_format"],
    routes: [onFirst, { ...onSecond, capabilities: ["response_format"] }]
  }
})

withLayer(served)("the routes of a chat", (it) => {
  it.effect.each([false, true])("do not include one that cannot honour the request, streamed: %s", function* (stream) {
    const body = { ...talk("narrow"), stream }
    const tools = { tools: [{ type: "function", function: { name: "f" } }] }
    const alone = yield* asking({ ...body, ...tools }, { first: failing(500) })
    assertRefused(alone.answer, refusals.upstream)
    assert.deepStrictEqual(alone.asked, [1, 0])
    const moved = yield* asking(body, { first: failing(500), second: answers() })
    assertChatServed(moved.answer, "narrow")
    assert.deepStrictEqual(moved.asked, [1, 1])
  })

  const breaks: ReadonlyArray<readonly [what: string, ...steps: ReadonlyArray<Step>]> = [
    ["an error", event(error()), done],
    ["an error that names a fault of the request", event(error({ code: "content_policy_violation" }))],
    ["garbage", "data: {hush\n\n"],
    ["the connection's end", cut],
    ["its own end, without a finish"]
  ]

  for (const { assertBroken, path, send } of chatApis) {
    it.effect.each(breaks)(
      `of ${path} end a stream with an error and without failover after its first delta: %s`,
      function* ([, ...rest]) {
        const reply = sse(chunk({ content: "Servus" }), ...rest)
        const body = { ...talk(`breaking${path}`), stream: true }
        const { answer, asked, spent } = yield* askingOf(send)(body, { first: reply })
        assertBroken(answer, refusals.upstream)
        assert.match(answer.text, /"Servus"[^]*\n\n/)
        assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
      }
    )
  }

  it.effect("are skipped for the customer alone whose five requests in a row made them fail", function* () {
    const failed = yield* Served.customer()
    for (let failures = 0; failures < 5; failures++) {
      assertRefused((yield* asking(talk("shared"), { first: failing(500) }, failed)).answer, refusals.upstream)
    }
    const { answer, asked } = yield* asking(talk("shared"), {}, failed)
    assertRefused(answer, refusals.noProvider)
    assert.deepStrictEqual(asked, [0, 0])
    assertChatServed((yield* asking(talk("shared"), { first: answers() })).answer, "shared")
  })

  it.effect("are skipped after five failures in a row of several customers", function* () {
    for (let failures = 0; failures < 5; failures++) {
      assertRefused((yield* asking(talk("weak"), { first: failing(500) })).answer, refusals.upstream)
    }
    const { answer, asked } = yield* asking(talk("weak"))
    assertRefused(answer, refusals.noProvider)
    assert.deepStrictEqual(asked, [0, 0])
  })

  it.effect("are skipped at once after a fault of the provider's account", function* () {
    assertRefused((yield* asking(talk("shut"), { first: failing(401) })).answer, refusals.upstreamAuth)
    const { answer, asked } = yield* asking(talk("shut"))
    assertRefused(answer, refusals.noProvider)
    assert.deepStrictEqual(asked, [0, 0])
  })

  it.effect("are not skipped for faults of requests", function* () {
    for (let refusal = 0; refusal < 7; refusal++) {
      const reply = refusal % 2 === 0 ? failing(422) : failing(400, { code: "content_policy_violation" })
      assert.deepStrictEqual((yield* asking(talk("weak-pair"), { first: reply })).asked, [1, 0])
    }
    yield* asking(talk("weak-pair"), { first: failing(403), second: answers() })
    const passed = yield* asking(talk("weak-pair"), { second: answers() })
    assertChatServed(passed.answer, "weak-pair")
    assert.deepStrictEqual(passed.asked, [0, 1])
    const failed = yield* asking(talk("weak-pair"), { second: failing(500) })
    assertRefused(failed.answer, refusals.allFailed("second", 500))
    assert.deepStrictEqual(failed.asked, [0, 1])
  })
})
