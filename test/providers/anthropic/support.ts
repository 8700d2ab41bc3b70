import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { ChatEvent, ChatRequest, FinishReason, ToolCall, Usage } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import * as Anthropic from "../../../src/providers/anthropic/Anthropic.ts"
import { options as decoder } from "../../../src/providers/anthropic/Options.ts"
import { encodeRequest } from "../../../src/providers/anthropic/Request.ts"
import type { ChatAdapter } from "../../../src/services/routing/Provider.ts"
import { type Heard, hear, request } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { layer, routeTo } from "./Hosts.ts"
import { event } from "./Wire.ts"

/** A test against a fake of its own. */
export const check = (
  name: string,
  body: (adapter: ChatAdapter, fake: Fake.FakeUpstream, route: Route) => Effect.Effect<unknown, unknown, Scope.Scope>,
  options: Route["options"] = {}
) =>
  it.scopedLive(name, () =>
    Effect.gen(function* () {
      const { chat } = yield* Anthropic.make
      if (chat === undefined) return yield* Effect.dieMessage("no chat")
      const fake = yield* Fake.make
      return yield* body(chat, fake, routeTo(fake.url, options))
    }).pipe(Effect.provide(layer))
  )

/** A test of what becomes of a stream's bytes. */
export const heard = (
  name: string,
  all: ReadonlyArray<Fake.Step>,
  then: (heard: Heard) => void,
  given: Partial<ChatRequest> = {}
) =>
  check(name, (adapter, fake, route) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse(...all))
      then(yield* hear(adapter, route, request(given)))
    })
  )

/** The body that a request becomes on a route with these options. */
export const bodyOf = (given: Partial<ChatRequest>, options: Route["options"] = {}, stream = false) => {
  const route = routeTo("http://anthropic.test", options)
  return encodeRequest({
    route,
    request: request(given),
    options: decoder.of(route),
    isStream: stream,
    quirks: { thinking: true }
  })
}

export const called = (id: string, name: string, text: string): ToolCall => ({
  id,
  type: "function",
  function: { name, arguments: text }
})

export const begun = (usage: object = {}) => {
  const begun = { id: "msg_1", type: "message", role: "assistant", content: [], stop_reason: null, usage }
  return event({ type: "message_start", message: begun })
}
export const opens = (index: number, content_block: object) =>
  event({ type: "content_block_start", index, content_block })
export const adds = (index: number, delta: object) => event({ type: "content_block_delta", index, delta })
export const closes = (index: number) => event({ type: "content_block_stop", index })
export const says = (index: number, text: string) => adds(index, { type: "text_delta", text })
export const ends = (stop_reason: string | null, more: object = {}) =>
  event({ type: "message_delta", delta: { stop_reason, stop_sequence: null }, ...more })
export const stopped = event({ type: "message_stop" })

export const said = (...events: ReadonlyArray<ChatEvent>): Heard => ({ events, failure: undefined })
export const text = (text: string): ChatEvent => ({ type: "content", text })
export const finished = (reason: FinishReason): ChatEvent => ({ type: "finish", reason })
export const counted = (usage: Partial<Usage>): ChatEvent => ({
  type: "usage",
  usage: { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0, ...usage }
})
