import { Effect, type Scope } from "effect"
import type { ChatAnswer } from "../../domain/Chat.ts"
import type { ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import type { Upstream, UpstreamRequest, UpstreamStream } from "../client/Upstream.ts"
import { gathered, isGood, isStream } from "../client/UpstreamResponse.ts"
import { chatPullOf, eventsOf } from "./ChatStream.ts"

/** How a wire format asks for chats. `Said` is a request in one of the ways in which it can be said there. */
export interface Wire<Said> {
  readonly call: (said: Said, stream: boolean) => UpstreamRequest
  readonly read: (said: Said, answer: UpstreamAnswer) => Effect.Effect<ChatAnswer, ProviderFailure>
  readonly pull: (said: Said, stream: UpstreamStream) => ChatPull
  /** Another way to say what the host refused for how it was said; undefined where there is none. */
  readonly otherwise: (said: Said, refusal: UpstreamAnswer) => Said | undefined
  readonly refused: (said: Said, refusal: UpstreamAnswer) => Effect.Effect<never, ProviderFailure>
}

/** Asks a host for chats, in another way where it wants that. It may answer a stream's request in one piece. */
export const asking = <Said>(upstream: Upstream["Type"], { call, otherwise, pull, read, refused }: Wire<Said>) => {
  const ask = (said: Said): Effect.Effect<ChatAnswer, ProviderFailure> =>
    Effect.flatMap(upstream.post(call(said, false)), (answer) => {
      if (isGood(answer)) return read(said, answer)
      const other = otherwise(said, answer)
      return other === undefined ? refused(said, answer) : ask(other)
    })

  const open = (said: Said): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> =>
    Effect.flatMap(upstream.open(call(said, true)), (stream) => {
      if (isStream(stream)) return Effect.succeed(pull(said, stream))
      return Effect.flatMap(gathered(stream), (answer) => {
        if (isGood(answer)) return Effect.map(read(said, answer), (whole) => chatPullOf(eventsOf(whole)))
        const other = otherwise(said, answer)
        return other === undefined ? refused(said, answer) : open(other)
      })
    })

  return { ask, open }
}
