import { Effect, Either, Predicate } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { hasImage } from "../../domain/ChatRules.ts"
import type { Route } from "../../domain/Model.ts"
import { type Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { asking } from "../chat/ChatClient.ts"
import { chatPull } from "../chat/ChatStream.ts"
import { inlinesImages } from "../chat/InlineImages.ts"
import { cutAnswer, cutPull } from "../chat/Stops.ts"
import { malformed, parse, spending } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { jsonBody, type LargeJson } from "../client/JsonBody.ts"
import { loggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { refused } from "../client/UpstreamResponse.ts"
import { answerOf, errorIn, type NewId, usageOf } from "./Answer.ts"
import * as Dialects from "./Dialects.ts"
import { features, type Options, optionsOf } from "./Options.ts"
import { type Dialect, wireRequest } from "./Request.ts"
import { decoder } from "./Stream.ts"

/** Below this, no host bills a part of the prompt at its cached price. */
const cacheableCharacters = 4_096

interface Call {
  readonly route: Route
  readonly request: ChatRequest
  readonly options: Options
  readonly stream: boolean
}

/** A call in a dialect, and its body in that. */
interface Said extends Call {
  readonly dialect: Dialect
  readonly body: string | LargeJson
}

const say = (call: Call, dialect: Dialect): Said => {
  const { options, request, route, stream } = call
  const body = jsonBody(request, wireRequest(route, request, stream && dialect.stream, options, dialect))
  return { ...call, dialect, body }
}

const call = ({ body, route }: Said): UpstreamRequest => ({
  account: route.provider,
  path: "/responses",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  body
})

const readAs =
  (newId: NewId) =>
  ({ request, route }: Said, answer: UpstreamAnswer) => {
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

  const { ask, open } = asking<Said>(upstream, {
    call,
    read: readAs(newId),
    pull: ({ body, request, route }, stream) => {
      const reading = decoder(route.provider, newId)
      const plain = !hasImage(request) && typeof body === "string" && body.length < cacheableCharacters
      return cutPull(chatPull(stream, reading), request.stop, () => plain && !reading.hidden)
    },
    otherwise: (said, { body }) => {
      const dialect = dialects.adapt(said.route, said.dialect, body)
      return dialect && say(said, dialect)
    },
    refused: ({ route }, answer) => refused(route, answer)
  })

  const first = (route: Route, request: ChatRequest, stream: boolean): Effect.Effect<Said, ProviderFailure> =>
    Effect.suspend(() =>
      Either.match(optionsOf(route), {
        onLeft: (wrong) =>
          new ProviderFailure({
            class: "retry",
            status: undefined,
            detail: loggable(route.provider, wrong),
            unsent: true
          }),
        onRight: (options) => Effect.succeed(say({ route, request, options, stream }, dialects.of(route)))
      })
    )

  return {
    adapter: "openai-responses",
    chat: {
      features,
      inlines: inlinesImages,
      complete: (route, request) => Effect.flatMap(first(route, request, false), ask),
      stream: (route, request) => Effect.flatMap(first(route, request, true), open)
    }
  }
})
