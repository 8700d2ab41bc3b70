import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { ChatEvent, FinishReason } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as OpenAiChat from "../../../src/providers/openai-chat/OpenAiChat.ts"
import type { ChatAdapter } from "../../../src/services/routing/Provider.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { routeTo } from "./Hosts.ts"

/** A test against a fake of its own. */
export const check = (
  name: string,
  body: (adapter: ChatAdapter, fake: Fake.FakeUpstream, route: Route) => Effect.Effect<unknown, unknown, Scope.Scope>
) =>
  it.scopedLive(name, () =>
    Effect.gen(function* () {
      const { chat } = yield* OpenAiChat.make
      if (chat === undefined) return yield* Effect.dieMessage("no chat")
      const fake = yield* Fake.make
      return yield* body(chat, fake, routeTo(`${fake.url}/v1`))
    }).pipe(Effect.provide(Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })))
  )

export const chunk = (delta: unknown, finish: string | null = null, more = {}) =>
  Fake.event({ choices: [{ index: 0, delta, finish_reason: finish }], ...more })
export const stop = chunk({}, "stop")

export const said = (...events: ReadonlyArray<ChatEvent>) => ({ events, failure: undefined })
export const text = (text: string): ChatEvent => ({ type: "content", text })
export const finished = (reason: FinishReason): ChatEvent => ({ type: "finish", reason })
