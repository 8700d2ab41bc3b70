import { Effect, Predicate, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import type { Route } from "../domain/Model.ts"
import { Ids } from "../services/Ids.ts"
import type { ChatPull, Provider, ProviderFailure } from "../services/Provider.ts"
import { gathered, isGood, isStream, refused } from "./Answered.ts"
import { chatPull, chatPullOf, eventsOf } from "./ChatStream.ts"
import { malformed, parse, spending } from "./Classification.ts"
import { answerOf, errorIn, type NewId, usageOf } from "./openai-chat/Answer.ts"
import * as Dialects from "./openai-chat/Dialects.ts"
import { cutsHere, type Dialect, requestText } from "./openai-chat/Request.ts"
import { decoder } from "./openai-chat/Stream.ts"
import { cutAnswer, cutPull } from "./Stops.ts"
import { Upstream, type UpstreamRequest } from "./Upstream.ts"
import type { UpstreamAnswer } from "./upstream/Exchange.ts"

const call = (route: Route, request: ChatRequest, stream: boolean, dialect: Dialect): UpstreamRequest => ({
  account: route.provider,
  path: "/chat/completions",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  body: requestText(route, request, stream, dialect)
})

const read = (
  route: Route,
  request: ChatRequest,
  answer: UpstreamAnswer,
  newId: NewId
): Effect.Effect<ChatAnswer, ProviderFailure> => {
  const body = parse(answer.body)
  const read = answerOf(body, newId)
  if (typeof read !== "string") return Effect.succeed(cutAnswer(read, cutsHere(route, request)))
  const error = Predicate.isRecord(body) ? errorIn(body) : undefined
  const failed =
    error === undefined
      ? Effect.fail(malformed(route.provider, answer.status, read))
      : refused(route, { ...answer, body: JSON.stringify(error) })
  return Effect.mapError(failed, (failure) =>
    spending(failure, Predicate.isRecord(body) ? usageOf(body.usage) : undefined)
  )
}

/** Any host that speaks the chat-completions convention, with `Authorization: Bearer`. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids
  const newId = () => ids.prefixed("call")
  const dialects = Dialects.make()

  const ask = (
    route: Route,
    request: ChatRequest,
    first: Dialect,
    sent: Dialect
  ): Effect.Effect<ChatAnswer, ProviderFailure> =>
    Effect.flatMap(upstream.post(call(route, request, false, sent)), (answer) => {
      if (isGood(answer)) return read(route, request, answer, newId)
      const other = dialects.adapt(route, first, sent, answer.body)
      return other === undefined ? refused(route, answer) : ask(route, request, first, other)
    })

  const open = (
    route: Route,
    request: ChatRequest,
    first: Dialect,
    sent: Dialect
  ): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> =>
    Effect.flatMap(upstream.open(call(route, request, true, sent)), (stream) => {
      if (isStream(stream)) {
        const pull = chatPull(stream, decoder(route.provider, newId))
        // What the host thought is not in its stream: only its own usage tells what a cut one has cost.
        return Effect.succeed(cutPull(pull, cutsHere(route, request), () => false))
      }
      return Effect.flatMap(gathered(stream), (answer) => {
        if (isGood(answer))
          return Effect.map(read(route, request, answer, newId), (whole) => chatPullOf(eventsOf(whole)))
        const other = dialects.adapt(route, first, sent, answer.body)
        return other === undefined ? refused(route, answer) : open(route, request, first, other)
      })
    })

  return {
    adapter: "openai-chat",
    chat: {
      inlines: (route) => route.options.inline_images === true,
      complete: (route, request) =>
        Effect.suspend(() => {
          const dialect = dialects.of(route)
          return ask(route, request, dialect, dialect)
        }),
      stream: (route, request) =>
        Effect.suspend(() => {
          const dialect = dialects.of(route)
          return open(route, request, dialect, dialect)
        })
    }
  }
})
