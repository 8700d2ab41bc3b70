import { Effect, Predicate } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import type { Provider } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { asking } from "../chat/ChatClient.ts"
import { chatPull } from "../chat/ChatStream.ts"
import { inlinesImages } from "../chat/InlineImages.ts"
import { cutAnswer, cutPull } from "../chat/Stops.ts"
import { malformed, parse, spending } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { jsonBody } from "../client/JsonBody.ts"
import { Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { refused } from "../client/UpstreamResponse.ts"
import { answerOf, errorIn, type NewId, usageOf } from "./Answer.ts"
import * as Dialects from "./Dialects.ts"
import { cutsHere, type Dialect, features, requestBody } from "./Request.ts"
import { decoder } from "./Stream.ts"

/** A request in a dialect, and the one that it was first said in. */
interface Said {
  readonly route: Route
  readonly request: ChatRequest
  readonly first: Dialect
  readonly dialect: Dialect
}

const call = ({ dialect, request, route }: Said, stream: boolean): UpstreamRequest => ({
  account: route.provider,
  path: "/chat/completions",
  authorization: (secret) => ({ authorization: `Bearer ${secret}` }),
  body: jsonBody(request, requestBody(route, request, stream, dialect))
})

const readAs =
  (newId: NewId) =>
  ({ request, route }: Said, answer: UpstreamAnswer) => {
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

  const { ask, open } = asking<Said>(upstream, {
    call,
    read: readAs(newId),
    pull: ({ request, route }, stream) =>
      // What the host thought is not in its stream: only its own usage tells what a cut one has cost.
      cutPull(chatPull(stream, decoder(route.provider, newId)), cutsHere(route, request), () => false),
    otherwise: (said, { body }) => {
      const dialect = dialects.adapt(said.route, said.first, said.dialect, body)
      return dialect && { ...said, dialect }
    },
    refused: ({ route }, answer) => refused(route, answer)
  })

  const say = (route: Route, request: ChatRequest) =>
    Effect.sync((): Said => {
      const dialect = dialects.of(route)
      return { route, request, first: dialect, dialect }
    })

  return {
    adapter: "openai-chat",
    chat: {
      features,
      inlines: inlinesImages,
      complete: (route, request) => Effect.flatMap(say(route, request), ask),
      stream: (route, request) => Effect.flatMap(say(route, request), open)
    }
  }
})
