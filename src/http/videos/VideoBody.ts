import { Effect, Either } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import type { Model } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import type { VideoParams } from "../../domain/Video.ts"
import { secondsFor } from "../../domain/VideoRules.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { VideoCreation } from "../../services/videos/Create.ts"
import { attribute } from "../admission/Attribution.ts"
import type { AdmittedRequest } from "../admission/Endpoint.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { isAbsent, isArray, type JsonObject, modelIn } from "../body/Guards.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decodeReferences } from "../body/ReferenceFields.ts"
import { decoder } from "../schema/Decoding.ts"
import { VideoCreateRequest } from "./Schema.ts"

const decode = decoder(VideoCreateRequest)

export const decodeVideoBody = (body: unknown): Either.Either<VideoParams, InvalidRequest> =>
  Either.map(decode(body), ({ duration, image, input_reference, model, prompt, seconds, webhook_url }) => ({
    model,
    prompt,
    seconds: seconds ?? duration ?? undefined,
    references: [image, input_reference].find((references) => references?.length) ?? [],
    webhookUrl: webhook_url ?? undefined
  }))

const asList = (value: unknown): ReadonlyArray<unknown> => {
  if (isAbsent(value)) return []
  return isArray(value) ? value : [value]
}

export const videoForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const { "input_reference[file_id]": file_id, "input_reference[image_url]": image_url, ...body } = formObject(parts)
  const named = isAbsent(file_id) && isAbsent(image_url) ? [] : [{ file_id, image_url }]
  return {
    ...body,
    n: body.n === "1" ? 1 : body.n,
    input_reference: [...asList(body.input_reference), ...named]
  }
}

/** Decodes a body, and finds what it is offered. */
export const makeVideoReader = Effect.gen(function* () {
  const catalog = yield* Catalog

  const offerFor = (
    params: VideoParams,
    mayUse: (model: Model) => boolean,
    at: number
  ): Either.Either<Pick<VideoCreation, "model" | "seconds">, Failure> => {
    const model = catalog.current.findAt(params.model, at)
    if (model?.surface !== "video") return Either.left(unknownModel(catalog.current, params.model, "video", mayUse))
    return Either.map(secondsFor(model, params), (seconds) => ({ model, seconds }))
  }

  return Effect.fnUntraced(function* (admitted: AdmittedRequest, received: unknown) {
    const { record } = admitted
    const body = yield* decodeReferences(received)
    record.model = modelIn(body)
    const refusal = attribute(admitted, body)
    if (refusal !== undefined) return yield* refusal
    const decoded = yield* decodeVideoBody(body)
    const found = catalog.current.findAt(decoded.model, record.at)
    const params = found?.surface === "video" ? { ...decoded, model: found.id } : decoded
    record.model = found?.id ?? decoded.model
    yield* requireAllowed(record.caller, "video", found)
    return { params, offer: offerFor(params, ({ id }) => mayUseModel(record.caller, id), record.at) }
  })
})
