import { Effect } from "effect"
import type { ChatAnswer, FinishReason } from "../../../src/domain/Chat.ts"
import { toUnread } from "../../../src/providers/chat/EndReasons.ts"
import { hear, joined, request } from "../../contracts/ChatHarness.ts"
import type { ChatWire } from "../../contracts/ChatHosts.ts"
import { scenarios } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "../anthropic/Wire.ts"
import * as Gemini from "../gemini/Wire.ts"
import * as Chat from "../openai-chat/Wire.ts"
import * as Responses from "../openai-responses/Wire.ts"

type Ended = Pick<ChatAnswer, "finish" | "unread">

interface Ends {
  readonly wire: ChatWire
  /** An answer with this stop reason, in one piece and as a stream. */
  readonly replies: (reason: string) => readonly [Fake.Reply, Fake.Reply]
  readonly complete: ReadonlyArray<string>
  readonly length: ReadonlyArray<string>
  readonly filtered: ReadonlyArray<string>
  readonly breaks: ReadonlyArray<string>
  /** Reasons that become `length` with a note. */
  readonly unread: ReadonlyArray<string>
}

/** Replaces the wire's stop reason in an answer. */
const renaming =
  ({ encode }: ChatWire, usual: RegExp, rename: (reason: string) => string, finish: FinishReason = "stop") =>
  (reason: string): readonly [Fake.Reply, Fake.Reply] => {
    const { body, end, opening, output } = encode({ content: "half a text", finish })
    const put = (text: string) => text.replace(usual, rename(reason))
    const whole = put(JSON.stringify(body))
    assert.match(JSON.stringify(body), usual)
    assert.match(end.join(""), usual)
    return [Fake.text(200, "application/json", whole), Fake.sse(...[...opening, ...output, ...end].map(put))]
  }

const wires: ReadonlyArray<Ends> = [
  {
    wire: Chat.openAiChat,
    replies: renaming(Chat.openAiChat, /"finish_reason":"stop"/, (reason) => `"finish_reason":"${reason}"`),
    complete: ["stop", "eos", "end_turn", "STOP", "COMPLETE"],
    length: ["length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded", "repetition"],
    filtered: ["content_filter", "sensitive", "SAFETY", "content_filter: RECITATION", "content_filter: OF_TOMORROW"],
    breaks: [
      "error",
      "network_error",
      "abort",
      "engine_overloaded",
      "insufficient_system_resource",
      "function_call_filter: MALFORMED_FUNCTION_CALL",
      "MALFORMED_FUNCTION_CALL"
    ],
    unread: ["of_tomorrow", "of_tomorrow: SAFETY", "pause_turn"]
  },
  {
    wire: Anthropic.anthropic,
    replies: renaming(Anthropic.anthropic, /"stop_reason":"end_turn"/, (reason) => `"stop_reason":"${reason}"`),
    complete: ["end_turn", "stop_sequence", "tool_use"],
    length: ["max_tokens", "model_context_window_exceeded"],
    filtered: ["refusal", "sensitive"],
    breaks: ["error", "network_error", "abort"],
    unread: ["pause_turn", "compaction", "of_tomorrow"]
  },
  {
    wire: Gemini.gemini,
    replies: renaming(Gemini.gemini, /"finishReason":"STOP"/, (reason) => `"finishReason":"${reason}"`),
    complete: ["STOP"],
    length: ["MAX_TOKENS"],
    filtered: ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "MODEL_ARMOR"],
    breaks: ["OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "MALFORMED_OF_TOMORROW", "UNEXPECTED_TOOL_CALL"],
    unread: ["FINISH_REASON_UNSPECIFIED", "OF_TOMORROW"]
  },
  {
    wire: Responses.openAiResponses,
    replies: renaming(
      Responses.openAiResponses,
      /"reason":"max_output_tokens"/,
      (reason) => `"reason":"${reason}"`,
      "length"
    ),
    complete: [],
    length: ["max_output_tokens"],
    filtered: ["content_filter"],
    breaks: [],
    unread: ["of_tomorrow", "max_tool_calls"]
  }
]

describe.each(wires)("the end of an answer of an $wire.adapter host", (ends) => {
  const { check } = scenarios(ends.wire)

  const endsAs = (reasons: ReadonlyArray<string>, expected: (reason: string) => Ended) => {
    for (const reason of reasons) {
      const { finish, unread } = expected(reason)
      check(
        `by ${reason} is ${unread === undefined ? finish : `unread, and ${finish}`}`,
        function* (adapter, fake, route) {
          yield* fake.script(...ends.replies(reason))
          const fullAnswer = yield* adapter.complete(route, request())
          const heard = yield* hear(adapter, route, request())
          assert.isUndefined(heard.failure)
          for (const answered of [fullAnswer, joined(heard.events)]) {
            assert.deepStrictEqual([answered.content, answered.finish], ["half a text", finish])
            assert.deepStrictEqual(answered.unread, unread)
          }
        }
      )
    }
  }

  endsAs(ends.complete, () => ({ finish: "stop" }))
  endsAs(ends.length, () => ({ finish: "length" }))
  endsAs(ends.filtered, () => ({ finish: "content_filter" }))
  endsAs(ends.unread, (detail) => ({ finish: "length", unread: [{ part: "stop_reason", detail }] }))

  for (const reason of ends.breaks) {
    check(`by ${reason} is a break`, function* (adapter, fake, route) {
      yield* fake.script(...ends.replies(reason))
      const fullAnswer = yield* Effect.flip(adapter.complete(route, request()))
      const { events, failure } = yield* hear(adapter, route, request())
      for (const broken of [fullAnswer, failure]) {
        assert.strictEqual(broken?.class, "retry")
        assert.include(broken?.detail ?? "", reason)
        assert.notInclude(broken?.detail ?? "", "half a text")
      }
      assert.isFalse(events.some(({ type }) => type === "finish"))
    })
  }
})

describe("what the log says about an unknown value", () => {
  it("is a short word of the protocol, and never what a model wrote", () => {
    assert.deepStrictEqual(toUnread("block", "of_tomorrow"), { part: "block", detail: "of_tomorrow" })
    assert.deepStrictEqual(toUnread("stop_reason", 7), { part: "stop_reason", detail: "7" })
    for (const value of ["x".repeat(101), "zwei\nZeilen", "Größe", null, {}, ["a"]]) {
      assert.match(toUnread("block", value).detail, /^an? \w+ that is not a short text$/)
    }
  })
})
