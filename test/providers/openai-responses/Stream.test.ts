import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { type Heard, hear, joined, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { check, finished, inOnePiece, said, text } from "./support.ts"
import { failedWith, response, whole } from "./wire.ts"

const event = (type: string, fields: Readonly<Record<string, unknown>> = {}) =>
  `event: ${type}\n${Fake.event({ type, ...fields })}`
const created = event("response.created", { response: response({ status: "in_progress" }) })
const delta = (delta: string) => event("response.output_text.delta", { item_id: "msg_1", output_index: 0, delta })
const ended = (of = response({})) => event(`response.${of.status}`, { response: of })
const usage = { prompt: 21, completion: 13, cached: 8, cacheWrite: 2, reasoning: 5 }
const silent = event("response.web_search_call.searching", { output_index: 0, item_id: "ws_1" })

const heard = (name: string, all: ReadonlyArray<Fake.Step>, then: (heard: Heard) => void) =>
  check(name, (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse(...all))
      then(yield* hear(adapter, route, request()))
    })
  )

describe("a stream of an openai-responses host", () => {
  heard(
    "shows no searches, parts, annotations, paddings, comments or events that are new",
    [
      ": hello\n\n",
      created,
      event("response.in_progress"),
      event("keepalive"),
      event("response.output_item.added", { output_index: 0, item: { type: "web_search_call", id: "ws_1" } }),
      silent,
      event("response.output_item.done", { output_index: 0, item: { type: "web_search_call", id: "ws_1" } }),
      event("response.content_part.added", { part: { type: "output_text", text: "" } }),
      event("response.output_text.delta", { delta: "a", obfuscation: "xyz" }),
      event("response.output_text.annotation.added", { annotation: { type: "url_citation", title: "t" } }),
      event("response.output_text.done", { text: "a" }),
      event("response.content_part.done", { part: { type: "output_text", text: "a" } }),
      event("response.invented", { delta: "no" }),
      ended(),
      delta("after the end")
    ],
    (heard) => assert.deepStrictEqual(heard, said(text(""), text("a"), finished("stop")))
  )

  heard("tells its usage last", [created, delta("a"), ended(whole({ content: "a", finish: "stop", usage }))], (heard) =>
    assert.deepStrictEqual(heard, said(text(""), text("a"), finished("stop"), { type: "usage", usage }))
  )

  const reasoning = (fields: object) => event("response.reasoning_summary_text.delta", { output_index: 0, ...fields })
  heard(
    "sets the paragraphs of its reasoning apart",
    [
      reasoning({ summary_index: 0, delta: "One" }),
      reasoning({ summary_index: 0, delta: "." }),
      reasoning({ summary_index: 1, delta: "Two." }),
      event("response.reasoning_text.delta", { output_index: 1, content_index: 0, delta: "Raw." }),
      delta("a"),
      ended()
    ],
    ({ events }) => assert.strictEqual(joined(events).reasoning, "One.\n\nTwo.\n\nRaw.")
  )

  heard(
    "shows a refusal as content that was filtered",
    [
      event("response.refusal.delta", { delta: "I will" }),
      event("response.refusal.delta", { delta: " not." }),
      ended()
    ],
    (heard) => assert.deepStrictEqual(heard, said(text("I will"), text(" not."), finished("content_filter")))
  )

  const cut = (reason: "max_output_tokens" | "content_filter" | undefined) =>
    ended(response({ status: "incomplete", incomplete_details: reason === undefined ? null : { reason } }))
  for (const [reason, finish] of [
    ["max_output_tokens", "length"],
    [undefined, "length"],
    ["content_filter", "content_filter"]
  ] as const) {
    heard(`incomplete for ${reason} finishes with ${finish}`, [delta("a"), cut(reason)], ({ events }) =>
      assert.deepStrictEqual(events.at(-1), finished(finish))
    )
  }

  heard(
    "of a host that sends no deltas is what its end holds",
    [created, ended(whole({ content: "all", reasoning: "r", finish: "stop", usage }))],
    ({ events, failure }) => {
      assert.isUndefined(failure)
      const expected = { content: "all", reasoning: "r", toolCalls: [], finish: "stop", usage } as const
      assert.deepStrictEqual(joined(events), expected)
    }
  )

  const fails = (
    name: string,
    all: ReadonlyArray<Fake.Step>,
    meaning: string,
    status: number | undefined,
    before: ReadonlyArray<ChatEvent> = []
  ) =>
    heard(`${name}: ${meaning}`, all, ({ events, failure }) =>
      assert.deepStrictEqual([events, failure?.class, failure?.status], [before, meaning, status])
    )
  const a = delta("a")

  fails("an end without a last event", [a], "network", 200, [text("a")])
  fails("an empty body", [], "network", 200)
  fails("a cut inside an event", [a, 'event: response.completed\ndata: {"type":', Fake.cut], "network", 200, [
    text("a")
  ])
  fails("[DONE] before the last event", [a, Fake.done], "retry", 200, [text("a")])
  fails("garbage in the middle", [a, 'data: {"type\n\n', ended()], "retry", 200, [text("a")])
  fails("data that is no event", ["data: 5\n\n", ended()], "retry", 200)
  fails("an end that is none", [a, event("response.completed", { response: { status: "cancelled" } })], "retry", 200, [
    text("a")
  ])
  fails(
    "arguments of a call that never began",
    [event("response.function_call_arguments.delta", { item_id: "fc", output_index: 0, delta: "{}" })],
    "retry",
    200
  )
  fails(
    "a call without a name",
    [event("response.output_item.added", { output_index: 0, item: { type: "function_call", call_id: "c" } })],
    "retry",
    200
  )
  fails("a failure without a word", [event("response.failed", { response: {} })], "retry", 200)
  fails("an error event", [a, event("error", { code: "server_error", message: "m", param: null })], "retry", 200, [
    text("a")
  ])
  fails(
    "an error event with its error inside",
    [event("error", { error: { code: "insufficient_quota", type: "insufficient_quota", message: "m" } })],
    "account",
    200
  )
  fails("an error of another convention", [Fake.event({ error: { code: "rate_limit_exceeded" } })], "limit", 200)

  for (const [code, meaning, param] of [
    ["server_error", "retry"],
    ["vector_store_timeout", "retry"],
    ["rate_limit_exceeded", "limit"],
    ["invalid_prompt", "moderation"],
    ["bio_policy", "moderation"],
    ["image_content_policy_violation", "moderation"],
    ["failed_to_download_image", "request", "messages"],
    ["invalid_image_url", "request", "messages"]
  ] as const) {
    check(`a response that failed with ${code} means ${meaning}, in one piece or as a stream`, (adapter, fake, route) =>
      Effect.gen(function* () {
        const failed = failedWith(code)
        yield* fake.script(Fake.json(200, failed), Fake.sse(created, ended(failed)), Fake.json(200, failed))
        for (const failure of [
          yield* Effect.flip(adapter.complete(route, request())),
          (yield* hear(adapter, route, request())).failure,
          (yield* hear(adapter, route, request())).failure
        ]) {
          assert.deepStrictEqual([failure?.class, failure?.param], [meaning, param])
        }
      })
    )
  }

  check("a stream's request answered in one piece is the same answer", (adapter, fake, route) =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "c", name: "f", arguments: "" }]
      const body = inOnePiece({ content: "a", reasoning: "r", toolCalls, finish: "tool_calls", usage })
      yield* fake.script(body, body)
      const { events, failure } = yield* hear(adapter, route, request())
      assert.isUndefined(failure)
      assert.deepStrictEqual(joined(events), yield* adapter.complete(route, request()))
    })
  )

  check("ends at its last event, whatever the host does with its connection", (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse(a, ended(), Effect.never))
      assert.deepStrictEqual(yield* hear(adapter, route, request()), said(text("a"), finished("stop")))
      const { closed } = yield* fake.received
      yield* closed
    })
  )
})
