import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { largestPicture } from "../../domain/Media.ts"
import type { Feature, ImageRoute, ProviderAccount } from "../../domain/Model.ts"
import { Fetcher } from "../../services/media/Fetcher.ts"
import type { Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import {
  amendFailure,
  decodeFailure as decodeConvention,
  readHostError,
  unsentFailure
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, parseJson } from "../client/Json.ts"
import { fetchFailure, resultRequest } from "../client/OwnOrigin.ts"
import { statedCostIn } from "../client/StatedCost.ts"
import { Upstream } from "../client/Upstream.ts"
import { decodeSafely, failWith, isSuccess, parseLargeJson } from "../client/UpstreamResponse.ts"
import { options } from "./Options.ts"
import { encodeContent } from "./Request.ts"
import { countInputImages, makeDecoder } from "./Response.ts"

const downloadSeconds = 60

const features = new Set<Feature>(["edit", "1K", "2K", "4K", "size"])

const authorization = (secret: string) => ({ authorization: `Bearer ${secret}` })

const ofCustomer = /^(prompt|images?)(\W|$)/

/** A field that only the route's options set is not the request's fault. */
const decodeFailure = (account: ProviderAccount, response: UpstreamResponse, nowMillis: number): ProviderFailure => {
  const failure = decodeConvention(account, response, nowMillis, "image")
  const field = readHostError(parseJson(response.body))?.param
  const isNamed = failure.class === "request" && failure.param === undefined && field !== undefined
  return isNamed && !ofCustomer.test(field) ? amendFailure(failure, { class: "retry" }) : failure
}

const fail = failWith(decodeFailure)

export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const fetcher = yield* Fetcher
  const ids = yield* Ids

  const ask = (route: ImageRoute, request: ImageRequest) => {
    const content = encodeContent(route, request, options.of(route), ids.unguessable())
    return content === undefined
      ? Effect.fail(unsentFailure(route, "the route cannot edit"))
      : upstream.post({ account: route.provider, authorization, ...content })
  }

  const download = ({ provider }: ImageRoute, url: string) => {
    const result = { url, limitBytes: largestPicture, withinSeconds: downloadSeconds }
    return Effect.mapError(fetcher.bytes(resultRequest(provider, authorization, result)), fetchFailure(provider))
  }

  return {
    adapter: "openai-images",
    options: options.decode,
    image: {
      features: () => features,
      generate: Effect.fn("OpenAiImages.generate")(function* (route, request) {
        const response = yield* ask(route, request)
        if (!isSuccess(response)) return yield* fail(route, response)
        const body = yield* parseLargeJson(response)
        const failBy = (error: unknown) => fail(route, { ...response, body: JSON.stringify(error) })
        const decode = makeDecoder(route, response, failBy)
        const { picture, revisedPrompt } = yield* decodeSafely(route.provider, response, () => decode(body))
        const fields = asFields(body)
        const inputTokens = countInputImages(fields)
        const statedCost = statedCostIn(fields, options.of(route).stated_cost)
        const bytes = typeof picture === "string" ? yield* download(route, picture) : picture
        return { bytes, revisedPrompt, inputTokens, statedCost }
      })
    }
  }
})
