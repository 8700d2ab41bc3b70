import { it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { ChatEvent, FinishReason } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as OpenAiResponses from "../../../src/providers/openai-responses/OpenAiResponses.ts"
import type { ChatAdapter } from "../../../src/services/routing/Provider.ts"
import type { Answer } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { routeTo } from "./Hosts.ts"
import { streamed, whole, written } from "./wire.ts"

/** A test against a fake of its own. */
export const check = (
  name: string,
  body: (adapter: ChatAdapter, fake: Fake.FakeUpstream, route: Route) => Effect.Effect<unknown, unknown, Scope.Scope>
) =>
  it.scopedLive(name, () =>
    Effect.gen(function* () {
      const { chat } = yield* OpenAiResponses.make
      if (chat === undefined) return yield* Effect.dieMessage("no chat")
      const fake = yield* Fake.make
      return yield* body(chat, fake, routeTo(`${fake.url}/v1`))
    }).pipe(Effect.provide(Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })))
  )

/** The replies of a host that answers so, in one piece and as a stream. */
export const inOnePiece = (answer: Answer) => Fake.json(200, whole(answer))
export const inEvents = (answer: Answer) => {
  const { end, opening, output } = streamed(whole(answer))
  return Fake.sse(...written([...opening, ...output, ...end]))
}

export const refusing = (code: string, param: string) =>
  Fake.json(400, { error: { message: "m", type: "invalid_request_error", code, param } })

export const said = (...events: ReadonlyArray<ChatEvent>) => ({ events, failure: undefined })
export const text = (text: string): ChatEvent => ({ type: "content", text })
export const finished = (reason: FinishReason): ChatEvent => ({ type: "finish", reason })
