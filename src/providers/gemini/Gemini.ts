import { Effect, Either } from "effect"
import type { ChatAnswer, ChatRequest } from "../../domain/Chat.ts"
import type { ImageRequest } from "../../domain/Image.ts"
import type { ImageRoute, Route, RouteBase } from "../../domain/Model.ts"
import { type Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { jsonPieces } from "../../services/runtime/Pieces.ts"
import { asking } from "../chat/ChatClient.ts"
import { chatPull } from "../chat/ChatStream.ts"
import { cutAnswer, cutPull } from "../chat/Stops.ts"
import { parse } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { jsonBody, type LargeJson } from "../client/JsonBody.ts"
import { loggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { isGood, parsed } from "../client/UpstreamResponse.ts"
import { type Reading, wholeAnswer } from "./Answer.ts"
import { isInline } from "./Contents.ts"
import { refused } from "./Failure.ts"
import { readPicture, wireImage, wirePrediction } from "./Image.ts"
import { chatFeatures, imageFeatures, type Options, optionsOf } from "./Options.ts"
import { declinedBy, ownStops, type Saying, wireRequest } from "./Request.ts"
import * as Sayings from "./Sayings.ts"
import { decoder } from "./Stream.ts"

const call = (route: RouteBase, model: string, method: string, body: UpstreamRequest["body"]): UpstreamRequest => ({
  account: route.provider,
  path: `/v1beta/${model.includes("/") ? model : `models/${model}`}:${method}`,
  authorization: (secret) => ({ "x-goog-api-key": secret }),
  body
})

const unable = ({ provider }: RouteBase, detail: string) =>
  new ProviderFailure({ class: "retry", status: undefined, detail: loggable(provider, detail), unsent: true })

const usable = (route: RouteBase): Effect.Effect<Options, ProviderFailure> =>
  Either.match(optionsOf(route), { onLeft: (wrong) => Effect.fail(unable(route, wrong)), onRight: Effect.succeed })

const read = (reading: Reading, { body }: UpstreamAnswer): Effect.Effect<ChatAnswer, ProviderFailure> => {
  const answer = wholeAnswer(parse(body), reading)
  return answer instanceof ProviderFailure
    ? Effect.fail(answer)
    : Effect.succeed(cutAnswer(answer, ownStops(reading.request)))
}

/** One way to say a request, in the host's words. */
interface Said {
  readonly reading: Reading
  readonly saying: Saying
  readonly body: string | LargeJson
}

/** Google's Gemini API, with `x-goog-api-key`: chats, pictures by Gemini, and by Imagen's `predict`. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids
  const sayings = Sayings.make()

  const say = (reading: Reading, saying: Saying): Said => {
    const { options, request, route } = reading
    return { reading, saying, body: jsonBody(request, wireRequest(route, request, options, saying)) }
  }

  const first = (route: Route, request: ChatRequest): Effect.Effect<Said, ProviderFailure> =>
    Effect.flatMap(usable(route), (options) => {
      if (!isInline(request.messages)) return Effect.fail(unable(route, "a picture that is not inline"))
      const reading = { route, request, options, newId: () => ids.prefixed("call") }
      return Effect.succeed(say(reading, sayings.of(route, options)))
    })

  /** Another way to say what was refused, if it is one. */
  const otherwise = ({ body, reading, saying }: Said, { body: why, status }: UpstreamAnswer): Said | undefined => {
    const other = status === 400 ? sayings.adapt(reading.route, saying, why) : undefined
    const said = other && say(reading, other)
    return said?.body === body ? undefined : said
  }

  const { ask, open } = asking<Said>(upstream, {
    call: ({ body, reading: { route } }, stream) =>
      call(route, route.model, stream ? "streamGenerateContent?alt=sse" : "generateContent", body),
    read: ({ reading }, answer) => read(reading, answer),
    pull: ({ reading }, stream) => cutPull(chatPull(stream, decoder(reading)), ownStops(reading.request), () => false),
    otherwise,
    refused: ({ reading: { route } }, answer) => refused(route, answer, "messages")
  })

  const draw = (route: ImageRoute, request: ImageRequest, options: Options) => {
    const edits = request.references.length > 0
    const predicts = options.api === "predict"
    const model = edits ? (predicts ? undefined : route.editModel) : route.model
    if (model === undefined) return Effect.fail(unable(route, "the route cannot edit"))
    return upstream.post(
      predicts
        ? call(route, model, "predict", JSON.stringify(wirePrediction(request, options)))
        : call(route, model, "generateContent", jsonPieces(wireImage(request, options), ids.unguessable()))
    )
  }

  return {
    adapter: "gemini",
    chat: {
      features: chatFeatures,
      inlines: () => true,
      declines: (route, request) =>
        Either.match(optionsOf(route), { onLeft: () => undefined, onRight: (options) => declinedBy(options, request) }),
      complete: (route, request) => Effect.flatMap(first(route, request), ask),
      stream: (route, request) => Effect.flatMap(first(route, request), open)
    },
    image: {
      features: imageFeatures,
      generate: Effect.fn("Gemini.generate")(function* (route, request) {
        const options = yield* usable(route)
        const answer = yield* draw(route, request, options)
        if (!isGood(answer)) return yield* refused(route, answer, "image")
        const picture = readPicture(route, options, yield* parsed(answer))
        return picture instanceof ProviderFailure ? yield* picture : picture
      })
    }
  }
})
