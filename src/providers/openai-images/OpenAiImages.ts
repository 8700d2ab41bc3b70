import { Clock, Effect, Either } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { largestPicture } from "../../domain/Media.ts"
import type { ImageRoute } from "../../domain/Model.ts"
import { Fetcher } from "../../services/media/Fetcher.ts"
import { type Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { hostError, malformed, parse, refusal } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { ownOrigin, unfetched } from "../client/OwnOrigin.ts"
import { loggable, Upstream } from "../client/Upstream.ts"
import { isGood, parsed } from "../client/UpstreamResponse.ts"
import { read } from "./Answer.ts"
import { optionsOf } from "./Options.ts"
import { contentOf } from "./Request.ts"

const downloadSeconds = 60

const authorization = (secret: string) => ({ authorization: `Bearer ${secret}` })

const ofCustomer = /^(prompt|images?)(\W|$)/

/** A field that only the route's options can have put there is no fault of the request's: another route may do. */
const refused = ({ provider }: ImageRoute, answer: UpstreamAnswer) =>
  Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<never, ProviderFailure> => {
    const failure = refusal(provider, answer, now, "image")
    const field = hostError(parse(answer.body))?.param
    const named = failure.class === "request" && failure.param === undefined && field !== undefined
    if (!named || ofCustomer.test(field)) return Effect.fail(failure)
    return Effect.fail(new ProviderFailure({ class: "retry", status: failure.status, detail: failure.detail }))
  })

/** Any host that speaks OpenAI's images API, with `Authorization: Bearer`. */
export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const fetcher = yield* Fetcher
  const ids = yield* Ids

  const unable = ({ provider }: ImageRoute, detail: string) =>
    new ProviderFailure({ class: "retry", status: undefined, detail: loggable(provider, detail), unsent: true })

  const ask = (route: ImageRoute, request: ImageRequest) =>
    Either.match(optionsOf(route), {
      onLeft: (wrong) => unable(route, wrong),
      onRight: (options) => {
        const content = contentOf(route, request, options, ids.unguessable())
        return content === undefined
          ? unable(route, "the route cannot edit")
          : upstream.post({ account: route.provider, authorization, ...content })
      }
    })

  const download = (route: ImageRoute, url: string) =>
    fetcher
      .bytes({
        url,
        from: "provider",
        limitBytes: largestPicture,
        withinSeconds: downloadSeconds,
        own: ownOrigin(route.provider, authorization)
      })
      .pipe(Effect.mapError(unfetched(route.provider)))

  return {
    adapter: "openai-images",
    image: {
      generate: Effect.fn("OpenAiImages.generate")(function* (route, request) {
        const answer = yield* ask(route, request)
        if (!isGood(answer)) return yield* refused(route, answer)
        const found = read(yield* parsed(answer))
        switch (found._tag) {
          case "Bytes":
            return { bytes: found.bytes, revisedPrompt: found.revisedPrompt }
          case "Url":
            return { bytes: yield* download(route, found.url), revisedPrompt: found.revisedPrompt }
          case "Error":
            return yield* refused(route, { ...answer, body: found.body })
          case "Moderated":
            return yield* new ProviderFailure({ class: "moderation", status: answer.status, detail: "moderated" })
          default:
            return yield* malformed(route.provider, answer.status, found.what)
        }
      })
    }
  }
})
