import { Clock, Effect, Option, Predicate, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import type { Route } from "../domain/Model.ts"
import { Ids } from "../services/Ids.ts"
import type { ChatPull, Provider, ProviderFailure } from "../services/Provider.ts"
import { chatPull, chatPullOf } from "./ChatStream.ts"
import { malformed, parse, refusal } from "./Classification.ts"
import { answerOf, errorIn, eventsOf, type NewId } from "./openai-chat/Answer.ts"
import * as Dialects from "./openai-chat/Dialects.ts"
import { type Dialect, requestText } from "./openai-chat/Request.ts"
import { decoder } from "./openai-chat/Stream.ts"
import { Upstream, type UpstreamRequest, type UpstreamStream } from "./Upstream.ts"
import type { UpstreamAnswer } from "./upstream/Exchange.ts"

const pieceLimitBytes = 16 * 1024 * 1024

const call = (route: Route, request: ChatRequest, stream: boolean, dialect: Dialect): UpstreamRequest => ({
  account: route.provider,
  path: "/chat/completions",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  body: requestText(route, request, stream, dialect)
})

const isGood = (head: { readonly status: number }) => head.status >= 200 && head.status < 300

const contentType = (stream: UpstreamStream): string => String(stream.headers["content-type"] ?? "").toLowerCase()

const refused = (route: Route, answer: UpstreamAnswer): Effect.Effect<never, ProviderFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(refusal(route.provider, answer, now)))

const read = (route: Route, answer: UpstreamAnswer, newId: NewId): Effect.Effect<ChatAnswer, ProviderFailure> => {
  const body = parse(answer.body)
  const read = answerOf(body, newId)
  if (typeof read !== "string") return Effect.succeed(read)
  const error = Predicate.isRecord(body) ? errorIn(body) : undefined
  return error === undefined
    ? Effect.fail(malformed(route.provider, answer.status, read))
    : refused(route, { ...answer, body: JSON.stringify(error) })
}

/** What a stream's request was answered with in one piece; an error's body is taken as far as it came. */
const gathered = (stream: UpstreamStream): Effect.Effect<UpstreamAnswer, ProviderFailure> => {
  const { headers, status } = stream
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  const more: Effect.Effect<UpstreamAnswer, ProviderFailure> = Effect.matchEffect(stream.pull, {
    onFailure: (cause) =>
      isGood(stream) && Option.isSome(cause)
        ? Effect.fail(cause.value)
        : Effect.succeed({ status, headers, body: Buffer.concat(chunks).toString("utf8") }),
    onSuccess: (next) => {
      for (const chunk of next) bytes += chunk.length
      chunks.push(...next)
      return bytes > pieceLimitBytes ? Effect.succeed({ status, headers, body: "" }) : more
    }
  })
  return more
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
      if (isGood(answer)) return read(route, answer, newId)
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
      if (isGood(stream) && !/json|html/.test(contentType(stream))) {
        return Effect.succeed(chatPull(stream, decoder(route.provider, newId)))
      }
      return Effect.flatMap(gathered(stream), (answer) => {
        if (isGood(answer)) return Effect.map(read(route, answer, newId), (whole) => chatPullOf(eventsOf(whole)))
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
