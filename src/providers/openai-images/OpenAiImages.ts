import { Effect, identity, Predicate, Schema, Struct } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { extensionOf, maxPictureBytes, type Picture } from "../../domain/Media.ts"
import type { Feature, ImageRoute } from "../../domain/Model.ts"
import { Base64Field, type ByteChunks, chunksOf, fromBase64, jsonChunks } from "../../services/media/Base64.ts"
import { Fetcher } from "../../services/media/Fetcher.ts"
import { type Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import {
  amendFailure,
  type DecodeFailure,
  decodeFailure as decodeDefault,
  hasFailedStatus,
  protocolFailure,
  readProviderError,
  unsentFailure
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asRecords, asText, type Fields, parseJson } from "../client/JsonFields.ts"
import { makeOptions, oneOf, optional, statedCostIn, statedCostOption } from "../client/RouteOptions.ts"
import { bearer, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import {
  decodeSafely,
  failWith,
  fetchFailure,
  isSuccess,
  parseLargeJson,
  resultRequest
} from "../client/UpstreamResponse.ts"

const Size = Schema.NonEmptyString
const ExtraBody = Schema.Record({ key: Schema.String, value: Schema.Unknown })

/** Options that are absent are not sent. */
export const Options = Schema.Struct({
  quality: optional(oneOf("auto", "low", "medium", "high", "standard")),
  size: optional(Size),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  background: optional(oneOf("auto", "opaque", "transparent")),
  output_format: optional(oneOf("png", "jpeg", "webp")),
  moderation: optional(oneOf("auto", "low")),
  response_format: optional(oneOf("b64_json")),
  edits: optional(oneOf("multipart", "json")),
  image_field: optional(oneOf("image[]", "image")),
  extra_body: optional(ExtraBody),
  extra_edit_body: optional(ExtraBody),
  ...statedCostOption
})
export type Options = typeof Options.Type

export const options = makeOptions(Options, identity)

export interface WireFields extends Pick<Options, "quality" | "background" | "output_format" | "response_format"> {
  model: string
  prompt: string
  n: number
  size?: string
}

export interface WireGeneration extends WireFields, Pick<Options, "moderation"> {}

const encodeFields = (model: string, request: ImageRequest, options: Options): WireFields => {
  const size = request.shape?.size ?? options.sizes?.[request.resolution] ?? options.size
  return {
    model,
    prompt: request.prompt,
    n: 1,
    ...(size === undefined ? undefined : { size }),
    ...Struct.pick(options, "quality", "background", "output_format", "response_format")
  }
}

export const encodeGeneration = (model: string, request: ImageRequest, options: Options): WireGeneration => ({
  ...encodeFields(model, request, options),
  ...Struct.pick(options, "moderation")
})

export const encodeEdit = encodeFields

interface FilePart {
  readonly name: string
  readonly filename: string
  readonly type: string
  readonly bytes: Uint8Array
}

const quote = (name: string): string =>
  `"${name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}"`

/** The boundary must be unguessable, because customers' texts must not contain it. */
const multipart = (
  boundary: string,
  fields: Readonly<Record<string, string>>,
  files: ReadonlyArray<FilePart>
): { readonly contentType: string; readonly body: ByteChunks } => {
  const head = (name: string) => `--${boundary}\r\ncontent-disposition: form-data; name=${quote(name)}`
  const parts: Array<Uint8Array> = Object.entries(fields).map(([name, value]) =>
    Buffer.from(`${head(name)}\r\n\r\n${value}\r\n`)
  )
  for (const { bytes, filename, name, type } of files) {
    const partHeaders = `${head(name)}; filename=${quote(filename)}\r\ncontent-type: ${type}\r\n\r\n`
    parts.push(Buffer.from(partHeaders), bytes, Buffer.from("\r\n"))
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: chunksOf(parts) }
}

const fileParts = (references: ReadonlyArray<Picture>, name: string): ReadonlyArray<FilePart> =>
  references.map(({ bytes, type }, index) => {
    return { name, filename: `image-${index + 1}.${extensionOf[type]}`, type, bytes }
  })

const encodeReferences = (references: ReadonlyArray<Picture>) => {
  const images = references.map(({ bytes, type }) => {
    return { type: "image_url", url: new Base64Field(bytes, `data:${type};base64,`) }
  })
  return images.length === 1 ? { image: images[0] } : { images }
}

const toFormFields = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])
  )

type EncodedBody = Pick<UpstreamRequest, "path" | "body" | "contentType">

const encodeGenerationBody = (route: ImageRoute, request: ImageRequest, options: Options): EncodedBody => ({
  path: "/images/generations",
  body: JSON.stringify({ ...options.extra_body, ...encodeGeneration(route.model, request, options) })
})

const encodeEditBody = (model: string, request: ImageRequest, options: Options, boundary: string): EncodedBody => {
  const path = "/images/edits"
  const fields = { ...options.extra_body, ...options.extra_edit_body, ...encodeEdit(model, request, options) }
  if (options.edits === "json")
    return { path, body: jsonChunks({ ...fields, ...encodeReferences(request.references) }, boundary) }
  const files = fileParts(request.references, options.image_field ?? "image[]")
  return { path, ...multipart(boundary, toFormFields(fields), files) }
}

/** Returns undefined if the route cannot edit. `boundary` must be unguessable. */
const encodeContent = (
  route: ImageRoute,
  request: ImageRequest,
  options: Options,
  boundary: string
): EncodedBody | undefined => {
  if (request.references.length === 0) return encodeGenerationBody(route, request, options)
  return route.editModel === undefined ? undefined : encodeEditBody(route.editModel, request, options, boundary)
}

/** An image as bytes or as a URL. */
interface DecodedImage {
  readonly image: Uint8Array | string
  readonly revisedPrompt: string | undefined
}

type Decoded = Effect.Effect<DecodedImage, ProviderFailure>

const dataUrl = /^data:[^,]{0,200};base64,/i

/** Returns the tokens of the reference images. The provider bills them in addition to the output. */
const countImageTokens = ({ usage }: Fields): number =>
  asCount(asFields(asFields(usage).input_tokens_details).image_tokens)

/** Makes a decoder of response bodies. `fail` classifies an error in a body. */
const makeDecoder = (
  { provider }: ImageRoute,
  { status }: UpstreamResponse,
  fail: (error: unknown) => Effect.Effect<never, ProviderFailure>
) => {
  /** `detail` is logged, so it must not quote the response. */
  const protocolError = (detail: string) => protocolFailure(provider, status, detail)
  const moderation = () => new ProviderFailure({ class: "moderation", status, detail: "moderated" })

  const decodeBytes = (text: string, revisedPrompt: string | undefined): Decoded => {
    const image = fromBase64(text.replace(dataUrl, ""))
    if (image === undefined) return protocolError("an image that is not base64")
    return image.length === 0 ? protocolError("an empty image") : Effect.succeed({ image, revisedPrompt })
  }

  const decodeItem = (item: Fields): Decoded | undefined => {
    if (item.error) return fail({ error: item.error })
    if (item.respect_moderation === false) return moderation()
    const revisedPrompt = asText(item.revised_prompt) || undefined
    const text = asText(item.b64_json)
    const url = asText(item.url)
    if (text !== "") return decodeBytes(text, revisedPrompt)
    if (url === "") return undefined
    return dataUrl.test(url) ? decodeBytes(url, revisedPrompt) : Effect.succeed({ image: url, revisedPrompt })
  }

  return (body: unknown): Decoded => {
    if (!Predicate.isRecord(body)) return protocolError("a response that is not a JSON object")
    const { code, data, error, message, respect_moderation } = body
    if (error) return fail({ error })
    if (!Array.isArray(data) && code !== undefined) return fail({ code, message })
    if (hasFailedStatus(body)) return fail({ base_resp: body.base_resp })
    if (Array.isArray(data) && respect_moderation === false) return moderation()
    for (const item of asRecords(data)) {
      const image = decodeItem(item)
      if (image !== undefined) return image
    }
    return protocolError("a response without an image")
  }
}

const downloadSeconds = 60

const features = new Set<Feature>(["edit", "1K", "2K", "4K", "size"])

const customerField = /^(prompt|images?)(\W|$)/

/** If the provider refuses a field that only the route's options set, another route may succeed. */
const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const failure = decodeDefault(account, response, nowMillis, "image")
  const field = readProviderError(parseJson(response.body))?.param
  const namesField = failure.class === "request" && failure.param === undefined && field !== undefined
  return namesField && !customerField.test(field) ? amendFailure(failure, { class: "retry" }) : failure
}

const fail = failWith(decodeFailure)

export const make: Effect.Effect<Provider, never, Upstream | Fetcher> = Effect.gen(function* () {
  const upstream = yield* Upstream
  const fetcher = yield* Fetcher
  const ids = yield* Ids

  const send = (route: ImageRoute, request: ImageRequest) => {
    const content = encodeContent(route, request, options.of(route), ids.unguessable())
    return content === undefined
      ? Effect.fail(unsentFailure(route, "the route cannot edit"))
      : upstream.post({ account: route.provider, authorization: bearer, ...content })
  }

  const download = ({ provider }: ImageRoute, url: string) => {
    const result = { url, limitBytes: maxPictureBytes, withinSeconds: downloadSeconds }
    return Effect.mapError(fetcher.bytes(resultRequest(provider, bearer, result)), fetchFailure(provider))
  }

  return {
    adapter: "openai-images",
    options: options.decode,
    image: {
      features: () => features,
      generate: Effect.fn("OpenAiImages.generate")(function* (route, request) {
        const response = yield* send(route, request)
        if (!isSuccess(response)) return yield* fail(route, response)
        const body = yield* parseLargeJson(response)
        const failWithError = (error: unknown) => fail(route, { ...response, body: JSON.stringify(error) })
        const decode = makeDecoder(route, response, failWithError)
        const { image, revisedPrompt } = yield* decodeSafely(route.provider, response, () => decode(body))
        const fields = asFields(body)
        const inputTokens = countImageTokens(fields)
        const statedCost = statedCostIn(fields, options.of(route).stated_cost)
        const bytes = typeof image === "string" ? yield* download(route, image) : image
        return { bytes, revisedPrompt, inputTokens, statedCost }
      })
    }
  }
})
