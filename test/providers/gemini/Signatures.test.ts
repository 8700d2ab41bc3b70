import { Effect } from "effect"
import { encodeCallId, type Message, readCallId, type ToolCall } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { tagSignature as sealSignature, verifySignature } from "../../../src/providers/chat/Messages.ts"
import { encodeContents, type SignaturePolicy } from "../../../src/providers/gemini/GeminiRequest.ts"
import { hear, request } from "../../contracts/ChatHarness.ts"
import { records, routeTo } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { chunk, gemini } from "./Wire.ts"

const { check } = scenarios(gemini)

const user = (content: string): Message => ({ role: "user", content })
const called = (id: string, signature?: string): ToolCall => {
  return { id, type: "function", function: { name: `f_${id}`, arguments: "{}" }, ...(signature && { signature }) }
}
const calls = (...tool_calls: ReadonlyArray<ToolCall>): Message => ({ role: "assistant", content: null, tool_calls })
const result = (id: string): Message => ({ role: "tool", content: "r", tool_call_id: id })

const sentinel = "skip_thought_signature_validator"
const route = routeTo(gemini)
const other = { ...route, model: "gemini-3-other" }
const seal = (signature: string, of: Route = route) => sealSignature(of, signature) ?? ""

/** A call as the client sends it back. */
const replayed = (call: ToolCall): ToolCall => ({ ...call, ...readCallId(encodeCallId(call.id, call.signature)) })

/** Returns the signature of each earlier call by its id. */
const beside = (messages: ReadonlyArray<Message>, policy: SignaturePolicy = "required") =>
  encodeContents(route, messages, policy).contents.flatMap(({ parts }) =>
    parts.flatMap(({ functionCall, thoughtSignature }) =>
      functionCall === undefined ? [] : [[functionCall.id, thoughtSignature]]
    )
  )

describe("thought signatures over our wire", () => {
  it("come back byte by byte, and leave an ordinary id", () => {
    const signature = `${"Ab+/".repeat(500)}QQ==`
    const back = replayed(called("call_1", seal(signature)))
    assert.strictEqual(back.id, "call_1")
    assert.strictEqual(verifySignature(route, back.signature), signature)
  })

  it("are no route's but their own, and none once they were damaged", () => {
    const sig = seal("QUJD")
    assert.strictEqual(verifySignature(route, sig), "QUJD")
    for (const wrong of [undefined, "", "x", sig.slice(0, -1), `${sig}Q`, `x${sig.slice(1)}`]) {
      assert.isUndefined(verifySignature(route, wrong), wrong)
    }
    assert.isUndefined(verifySignature(other, sig))
    assert.isUndefined(verifySignature(routeTo(gemini, "https://else.test"), sig))
  })

  it("that are none are not handed out", () => {
    for (const none of [undefined, "", 5, "not base64", "ÄÖ"]) assert.isUndefined(sealSignature(route, none))
  })

  it("beyond 16384 characters stay behind, and ids that only look like ours are kept", () => {
    assert.strictEqual(encodeCallId("c", "s".repeat(16_385)), "c")
    assert.deepStrictEqual(readCallId("~sig~x"), { id: "~sig~x" })
    assert.deepStrictEqual(readCallId("functions.f:0"), { id: "functions.f:0" })
  })

  it("stand where they stood; the first call of each step of the turn that has none gets the sentinel", () => {
    const messages = [
      user("before"),
      calls(called("old"), called("older", seal("b2xk"))),
      result("old"),
      result("older"),
      user("now"),
      calls(called("a", seal("QQ==")), called("b")),
      result("a"),
      result("b"),
      calls(called("c"), called("d", seal("ZA=="))),
      result("c"),
      result("d"),
      calls(called("e", seal("ZQ==", other)))
    ]
    assert.deepStrictEqual(beside(messages), [
      ["old", undefined],
      ["older", "b2xk"],
      ["a", "QQ=="],
      ["b", undefined],
      ["c", sentinel],
      ["d", "ZA=="],
      ["e", sentinel]
    ])
  })

  it("are asked for by no model before Gemini 3, which gets its own back all the same", () => {
    const messages = [user("now"), calls(called("a", seal("QQ==")), called("b")), result("a"), calls(called("c"))]
    assert.deepStrictEqual(beside(messages, "optional"), [
      ["a", "QQ=="],
      ["b", undefined],
      ["c", undefined]
    ])
  })

  it("give way to the sentinel once the host has refused them", () => {
    assert.deepStrictEqual(beside([user("now"), calls(called("a", seal("QQ==")))], "sentinel"), [["a", sentinel]])
  })

  check("of an answer, whole or streamed, belong to its first call", function* (adapter, fake, own) {
    const parts = [
      { functionCall: { name: "f", args: { a: 1 } }, thoughtSignature: "QUJD" },
      { functionCall: { name: "g", args: {} } }
    ]
    yield* fake.script(
      Fake.json(200, chunk(parts, "STOP")),
      Fake.sse(Fake.event(chunk(parts)), Fake.event(chunk([], "STOP")))
    )
    const fullAnswer = yield* adapter.complete(own, request())
    const { events } = yield* hear(adapter, own, request())
    const streamed = events.flatMap((event) => (event.type === "tool_call" ? [event.signature] : []))
    for (const signatures of [fullAnswer.toolCalls.map(({ signature }) => signature), streamed]) {
      assert.deepStrictEqual(
        signatures.map((one) => verifySignature(own, one)),
        ["QUJD", undefined]
      )
    }
  })

  check("stay behind where the route says so", function* (adapter, fake, own) {
    yield* fake.script(Fake.json(200, chunk([{ functionCall: { name: "f" }, thoughtSignature: "QUJD" }], "STOP")))
    const { toolCalls } = yield* adapter.complete({ ...own, options: { call_signatures: false } }, request())
    assert.deepStrictEqual(
      toolCalls.map(({ signature }) => signature),
      [undefined]
    )
  })

  const refusal = (message: string) => Fake.json(400, { error: { code: 400, status: "INVALID_ARGUMENT", message } })
  const signaturesSent = ({ body }: Fake.Received) =>
    records(Object(body).contents)
      .flatMap(({ parts }) => records(parts))
      .map(({ thoughtSignature }) => thoughtSignature)
      .filter((signature) => signature !== undefined)

  for (const message of [
    "Corrupted thought signature.",
    "Function call `f` is missing a thought_signature in parts."
  ]) {
    check(`"${message}": the same route is asked once more with the sentinel`, function* (adapter, fake, own) {
      const messages = [user("now"), calls(called("a", seal("QQ==", own))), result("a")]
      const fine = chunk([{ text: "fine" }], "STOP")
      yield* fake.script(refusal(message), Fake.json(200, fine), refusal(message), Fake.sse(Fake.event(fine)))
      assert.strictEqual((yield* adapter.complete(own, request({ messages }))).content, "fine")
      assert.isUndefined((yield* hear(adapter, own, request({ messages }))).failure)
      const sent = [yield* fake.received, yield* fake.received, yield* fake.received, yield* fake.received]
      assert.deepStrictEqual(sent.map(signaturesSent), [["QQ=="], [sentinel], ["QQ=="], [sentinel]])
    })
  }

  for (const [name, messages, times] of [
    ["are not replaced twice", [user("now"), calls(called("a", seal("QQ=="))), result("a")], 2],
    ["are not replaced where there were none", undefined, 1]
  ] as const) {
    check(`refused by the host ${name}: the request is at fault`, function* (adapter, fake, own) {
      yield* fake.script(...Array.from({ length: times }, () => refusal("Corrupted thought signature.")))
      const failure = yield* Effect.flip(adapter.complete(own, request({ ...(messages && { messages }) })))
      assert.deepStrictEqual([failure.class, failure.status], ["request", 400])
    })
  }
})
