import { Clock, Effect, Either, Predicate } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { type Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { asking } from "../chat/ChatClient.ts"
import { chatPull } from "../chat/ChatStream.ts"
import { inlinesImages } from "../chat/InlineImages.ts"
import { cutAnswer, cutPull } from "../chat/Stops.ts"
import { malformed, parse, spending } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { jsonBody } from "../client/JsonBody.ts"
import { loggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { answerOf, type NewId, usageOf } from "./Answer.ts"
import { failureOf, refusesThinking } from "./Failure.ts"
import { features, type Options, optionsOf } from "./Options.ts"
import { ownStops, type WireRequest, wireRequest } from "./Request.ts"
import { decoder } from "./Stream.ts"
import { forcesTool, isOpen } from "./Thinking.ts"

/** A request on its way, with what its route's options make of it. */
interface Said {
  readonly route: Route
  readonly options: Options
  readonly request: ChatRequest
  readonly body: WireRequest
}

const call = ({ body, options, request, route }: Said): UpstreamRequest => ({
  account: route.provider,
  path: "/v1/messages",
  authorization: (secret) =>
    options.auth === "bearer" ? { authorization: `Bearer ${secret}` } : { "x-api-key": secret },
  headers: { "anthropic-version": options.version },
  body: jsonBody(request, body)
})

const say = (route: Route, request: ChatRequest, stream: boolean): Effect.Effect<Said, ProviderFailure> =>
  Either.match(optionsOf(route), {
    onLeft: (wrong) => {
      const detail = loggable(route.provider, wrong)
      return Effect.fail(new ProviderFailure({ class: "retry", status: undefined, unsent: true, detail }))
    },
    onRight: (options) =>
      Effect.succeed({ route, options, request, body: wireRequest(route, options, request, stream) })
  })

/** The same without what the host refused, where it was thinking that it refused. */
const otherwise = (said: Said, answer: UpstreamAnswer): Said | undefined => {
  const { thinking, ...body } = said.body
  return thinking !== undefined && refusesThinking(answer) ? { ...said, body } : undefined
}

const refused = ({ route }: Said, answer: UpstreamAnswer): Effect.Effect<never, ProviderFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(failureOf(route.provider, answer, now)))

const readAs = (newId: NewId) => (said: Said, answer: UpstreamAnswer) => {
  const body = parse(answer.body)
  const read = answerOf(body, newId)
  if (typeof read !== "string") return Effect.succeed(read)
  const failed =
    Predicate.isRecord(body) && Predicate.isRecord(body.error)
      ? refused(said, answer)
      : Effect.fail(malformed(said.route.provider, answer.status, read))
  return Effect.mapError(failed, (failure) =>
    spending(failure, Predicate.isRecord(body) ? usageOf(body.usage) : undefined)
  )
}

/** Anthropic's Messages API, and any host that speaks it. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids
  const newId = () => ids.prefixed("call")

  const { ask, open } = asking<Said>(upstream, {
    call,
    read: readAs(newId),
    pull: ({ route }, stream) => chatPull(stream, decoder(route.provider, newId)),
    otherwise,
    refused
  })

  return {
    adapter: "anthropic",
    chat: {
      features,
      inlines: inlinesImages,
      // Left to the model, the answer would be another than the one asked for.
      declines: (route, request) =>
        route.options.forced_tools === false && forcesTool(request) ? "tool_choice" : undefined,
      complete: (route, request) =>
        say(route, request, false).pipe(
          Effect.flatMap(ask),
          Effect.map((answer) => cutAnswer(answer, ownStops(request)))
        ),
      stream: (route, request) =>
        Effect.flatMap(say(route, request, true), (said) =>
          Effect.map(open(said), (pull) => cutPull(pull, ownStops(request), () => isOpen(said.options, said.body)))
        )
    }
  }
})
