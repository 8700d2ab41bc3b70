import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { ChatEvent, FinishReason, Message, ToolCall } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import * as Gemini from "../../../src/providers/gemini/Gemini.ts"
import type { ChatAdapter } from "../../../src/services/routing/Provider.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { type Chunk, chunk, layer } from "./Hosts.ts"
import { routeTo } from "./Wire.ts"

/** A test against a fake of its own. */
export const check = (
  name: string,
  body: (adapter: ChatAdapter, fake: Fake.FakeUpstream, route: Route) => Effect.Effect<unknown, unknown, Scope.Scope>
) =>
  it.scopedLive(name, () =>
    Effect.gen(function* () {
      const { chat } = yield* Gemini.make
      if (chat === undefined) return yield* Effect.dieMessage("no chat")
      const fake = yield* Fake.make
      return yield* body(chat, fake, routeTo(fake.url))
    }).pipe(Effect.provide(layer))
  )

export const text = (text: string): ChatEvent => ({ type: "content", text })
export const finished = (reason: FinishReason): ChatEvent => ({ type: "finish", reason })

export const stop = chunk([], "STOP")
export const calling = (name: string, more: object = {}): Chunk =>
  chunk([{ functionCall: { name, args: {}, ...more } }])

export const user = (content: string): Message => ({ role: "user", content })
export const called = (id: string, signature?: string): ToolCall => ({
  id,
  type: "function",
  function: { name: `f_${id}`, arguments: "{}" },
  ...(signature && { signature })
})
export const calls = (...tool_calls: ReadonlyArray<ToolCall>): Message => ({
  role: "assistant",
  content: null,
  tool_calls
})
export const result = (id: string): Message => ({ role: "tool", content: "r", tool_call_id: id })
