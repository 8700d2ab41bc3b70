import { Effect, Either, Predicate, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import { hasImage } from "../domain/ChatRules.ts"
import type { Route } from "../domain/Model.ts"
import { Ids } from "../services/Ids.ts"
import { type ChatPull, type Provider, ProviderFailure } from "../services/Provider.ts"
import { gathered, isGood, isStream, refused } from "./Answered.ts"
import { chatPull, chatPullOf, eventsOf } from "./ChatStream.ts"
import { malformed, parse, spending } from "./Classification.ts"
import { answerOf, errorIn, type NewId, usageOf } from "./openai-responses/Answer.ts"
import * as Dialects from "./openai-responses/Dialects.ts"
import { type Options, optionsOf } from "./openai-responses/Options.ts"
import { type Dialect, wireRequest } from "./openai-responses/Request.ts"
import { decoder } from "./openai-responses/Stream.ts"
import { cutAnswer, cutPull } from "./Stops.ts"
import { loggable, Upstream, type UpstreamRequest } from "./Upstream.ts"
import type { UpstreamAnswer } from "./upstream/Exchange.ts"

/** Below this, no host bills a part of the prompt at its cached price. */
const cacheableCharacters = 4_096

interface Call {
  readonly route: Route
  readonly request: ChatRequest
  readonly options: Options
}

const post = ({ options, request, route }: Call, stream: boolean, dialect: Dialect): UpstreamRequest => ({
  account: route.provider,
  path: "/responses",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  body: JSON.stringify(wireRequest(route, request, stream, options, dialect))
})

const read = (call: Call, answer: UpstreamAnswer, newId: NewId): Effect.Effect<ChatAnswer, ProviderFailure> => {
  const { request, route } = call
  const body = parse(answer.body)
  const read = answerOf(body, newId)
  if (typeof read !== "string") return Effect.succeed(cutAnswer(read, request.stop))
  const error = Predicate.isRecord(body) ? errorIn(body) : undefined
  const failed =
    error === undefined
      ? Effect.fail(malformed(route.provider, answer.status, read))
      : refused(route, { ...answer, body: JSON.stringify(error) })
  return Effect.mapError(failed, (failure) =>
    spending(failure, Predicate.isRecord(body) ? usageOf(body.usage) : undefined)
  )
}

/** Any host that speaks OpenAI's Responses API, with `Authorization: Bearer`. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids
  const newId = () => ids.prefixed("call")
  const dialects = Dialects.make()

  const ask = (call: Call, sent: Dialect): Effect.Effect<ChatAnswer, ProviderFailure> =>
    Effect.flatMap(upstream.post(post(call, false, sent)), (answer) => {
      if (isGood(answer)) return read(call, answer, newId)
      const other = dialects.adapt(call.route, sent, answer.body)
      return other === undefined ? refused(call.route, answer) : ask(call, other)
    })

  const open = (call: Call, sent: Dialect): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> => {
    const { request, route } = call
    const asked = post(call, sent.stream, sent)
    return Effect.flatMap(upstream.open(asked), (stream) => {
      if (isStream(stream)) {
        const reading = decoder(route.provider, newId)
        const { body } = asked
        const plain = !hasImage(request) && typeof body === "string" && body.length < cacheableCharacters
        return Effect.succeed(cutPull(chatPull(stream, reading), request.stop, () => plain && !reading.hidden))
      }
      return Effect.flatMap(gathered(stream), (answer) => {
        if (isGood(answer)) return Effect.map(read(call, answer, newId), (whole) => chatPullOf(eventsOf(whole)))
        const other = dialects.adapt(route, sent, answer.body)
        return other === undefined ? refused(route, answer) : open(call, other)
      })
    })
  }

  const withOptions = <A, R>(
    route: Route,
    request: ChatRequest,
    run: (call: Call, dialect: Dialect) => Effect.Effect<A, ProviderFailure, R>
  ) =>
    Effect.suspend(() =>
      Either.match(optionsOf(route), {
        onLeft: (wrong) =>
          new ProviderFailure({
            class: "retry",
            status: undefined,
            detail: loggable(route.provider, wrong),
            unsent: true
          }),
        onRight: (options) => run({ route, request, options }, dialects.of(route))
      })
    )

  return {
    adapter: "openai-responses",
    chat: {
      inlines: (route) => route.options.inline_images === true,
      complete: (route, request) => withOptions(route, request, ask),
      stream: (route, request) => withOptions(route, request, open)
    }
  }
})
