import { Clock, Effect, Either, Predicate, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import type { Route } from "../domain/Model.ts"
import { Ids } from "../services/Ids.ts"
import { type ChatPull, type Provider, ProviderFailure } from "../services/Provider.ts"
import { gathered, isGood, isStream } from "./Answered.ts"
import { answerOf, type NewId, usageOf } from "./anthropic/Answer.ts"
import { failureOf, refusesThinking } from "./anthropic/Failure.ts"
import { type Options, optionsOf } from "./anthropic/Options.ts"
import { ownStops, type WireRequest, wireRequest } from "./anthropic/Request.ts"
import { decoder } from "./anthropic/Stream.ts"
import { forcesTool, isOpen } from "./anthropic/Thinking.ts"
import { chatPull, chatPullOf, eventsOf } from "./ChatStream.ts"
import { malformed, parse, spending } from "./Classification.ts"
import { cutAnswer, cutPull } from "./Stops.ts"
import { loggable, Upstream, type UpstreamRequest } from "./Upstream.ts"
import type { UpstreamAnswer } from "./upstream/Exchange.ts"

/** A request on its way, with what its route's options make of it. */
interface Asking {
  readonly route: Route
  readonly options: Options
  readonly body: WireRequest
}

const call = ({ body, options, route }: Asking): UpstreamRequest => ({
  account: route.provider,
  path: "/v1/messages",
  authorization: (secret) =>
    options.auth === "bearer" ? { authorization: `Bearer ${secret}` } : { "x-api-key": secret },
  headers: { "anthropic-version": options.version },
  body: JSON.stringify(body)
})

const asking = (route: Route, request: ChatRequest, stream: boolean): Effect.Effect<Asking, ProviderFailure> =>
  Either.match(optionsOf(route), {
    onLeft: (wrong) => {
      const detail = loggable(route.provider, wrong)
      return Effect.fail(new ProviderFailure({ class: "retry", status: undefined, unsent: true, detail }))
    },
    onRight: (options) => Effect.succeed({ route, options, body: wireRequest(route, options, request, stream) })
  })

/** The same without what the host refused, where it was thinking that it refused. */
const adapted = (sent: Asking, answer: UpstreamAnswer): Asking | undefined => {
  const { thinking, ...body } = sent.body
  return thinking !== undefined && refusesThinking(answer) ? { ...sent, body } : undefined
}

const refused = ({ route }: Asking, answer: UpstreamAnswer): Effect.Effect<never, ProviderFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(failureOf(route.provider, answer, now)))

const read = (sent: Asking, answer: UpstreamAnswer, newId: NewId): Effect.Effect<ChatAnswer, ProviderFailure> => {
  const body = parse(answer.body)
  const read = answerOf(body, newId)
  if (typeof read !== "string") return Effect.succeed(read)
  const failed =
    Predicate.isRecord(body) && Predicate.isRecord(body.error)
      ? refused(sent, answer)
      : Effect.fail(malformed(sent.route.provider, answer.status, read))
  return Effect.mapError(failed, (failure) =>
    spending(failure, Predicate.isRecord(body) ? usageOf(body.usage) : undefined)
  )
}

/** Anthropic's Messages API, and any host that speaks it. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids
  const newId = () => ids.prefixed("call")

  const ask = (sent: Asking): Effect.Effect<ChatAnswer, ProviderFailure> =>
    Effect.flatMap(upstream.post(call(sent)), (answer) => {
      if (isGood(answer)) return read(sent, answer, newId)
      const other = adapted(sent, answer)
      return other === undefined ? refused(sent, answer) : ask(other)
    })

  const open = (sent: Asking): Effect.Effect<ChatPull, ProviderFailure, Scope.Scope> =>
    Effect.flatMap(upstream.open(call(sent)), (stream) => {
      if (isStream(stream)) return Effect.succeed(chatPull(stream, decoder(sent.route.provider, newId)))
      return Effect.flatMap(gathered(stream), (answer) => {
        if (isGood(answer)) return Effect.map(read(sent, answer, newId), (whole) => chatPullOf(eventsOf(whole)))
        const other = adapted(sent, answer)
        return other === undefined ? refused(sent, answer) : open(other)
      })
    })

  return {
    adapter: "anthropic",
    chat: {
      inlines: (route) => route.options.inline_images === true,
      // Left to the model, the answer would be another than the one asked for.
      declines: (route, request) =>
        route.options.forced_tools === false && forcesTool(request) ? "tool_choice" : undefined,
      complete: (route, request) =>
        asking(route, request, false).pipe(
          Effect.flatMap(ask),
          Effect.map((answer) => cutAnswer(answer, ownStops(request)))
        ),
      stream: (route, request) =>
        Effect.flatMap(asking(route, request, true), (sent) =>
          Effect.map(open(sent), (pull) => cutPull(pull, ownStops(request), () => isOpen(sent.options, sent.body)))
        )
    }
  }
})
