import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect, Either } from "effect"
import { hasScope, mayUseModel, scopeOf } from "../../domain/ApiKey.ts"
import { type Failure, InsufficientScope, InvalidRequest, VideoNotFound } from "../../domain/Failure.ts"
import type { Model } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import type { VideoParams } from "../../domain/Video.ts"
import { secondsFor } from "../../domain/VideoRules.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { isInSandbox } from "../../services/catalog/CatalogRules.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import type { VideoCreation } from "../../services/videos/Create.ts"
import { type Video, VideoJobs } from "../../services/videos/VideoJobs.ts"
import { videoJson } from "../../services/videos/VideoObject.ts"
import { json, respond, resultHeaders } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"
import { attribute } from "../admission/Attribution.ts"
import type { AdmittedRequest, Endpoint } from "../admission/Endpoint.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { idempotencyKeyOf } from "../admission/RequestContext.ts"
import { Limits, readJsonOrForm } from "../body/BodyReader.ts"
import { isAbsent, isArray, type JsonObject, modelIn } from "../body/Guards.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decodeReferences } from "../body/ReferenceFields.ts"
import { refuseAt } from "../body/Refusals.ts"
import { decoder } from "../schema/Decoding.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import { servedPath } from "../schema/ServedPath.ts"
import { createVideo, noSuchCursor, VideoCreateRequest, type VideoListQuery } from "./Schema.ts"

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

export const contentOf = ({ status, url }: Pick<Video, "status" | "url">): Either.Either<string, InvalidRequest> =>
  status === "completed" && url !== undefined
    ? Either.right(url)
    : Either.left(new InvalidRequest({ message: "The video is not completed.", param: null }))

const endpoint = { path: servedPath(createVideo), surface: "video", admitsWithHold: false } as const

/** Other ids never reach the database; some hold NUL. */
const wellFormedId = /^vid_[\w-]{1,128}$/

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

export const videoEndpoint = Effect.gen(function* () {
  const limits = yield* Limits
  const read = yield* makeVideoReader
  const videos = yield* VideoJobs

  const create = Effect.fnUntraced(function* (admitted: AdmittedRequest) {
    const { headers, record, request } = admitted
    const { offer, params } = yield* Effect.flatMap(
      readJsonOrForm(admitted, limits.mediaBodyBytes, videoForm),
      (received) => read(admitted, received)
    )
    const repeated = { params, idempotencyKey: idempotencyKeyOf(request), record }
    const { replayed, video } = Either.isRight(offer)
      ? yield* videos.create({ ...repeated, ...offer.right })
      : yield* Effect.flatMap(
          videos.replay(repeated),
          Effect.mapError(() => offer.left)
        )
    record.firstByteAt = yield* Monotonic.millis
    const sandbox = isInSandbox(record.route, Either.isRight(offer) ? offer.right.model.routes : undefined)
    return json(202, videoJson(video), {
      ...headers(),
      ...resultHeaders({ replayed, sandbox: video.sandbox || sandbox })
    })
  })

  return { ...endpoint, answer: create } satisfies Endpoint
})

export const VideosHandlers = HttpApiBuilder.group(
  ResourceApi,
  "videos",
  Effect.fnUntraced(function* (handlers) {
    const videos = yield* VideoJobs

    const find = Effect.fnUntraced(function* (id: string) {
      const { org } = yield* CurrentCaller
      return wellFormedId.test(id) ? yield* videos.find(org, id) : yield* new VideoNotFound()
    })

    const list = Effect.fnUntraced(function* ({ after, limit, order = "desc" }: typeof VideoListQuery.Type) {
      const { org } = yield* CurrentCaller
      const isId = after === undefined || wellFormedId.test(after)
      const found = isId ? videos.list(org, limit + 1, { after, order }) : new VideoNotFound()
      const all = yield* Effect.mapError(found, () => refuseAt("after", "after", noSuchCursor))
      const data = all.slice(0, limit).map(videoJson)
      const [first_id, last_id] = [data.at(0)?.id ?? null, data.at(-1)?.id ?? null]
      return respond(json(200, { object: "list", data, first_id, last_id, has_more: all.length > limit }))
    })

    const remove = Effect.fnUntraced(function* (id: string) {
      const caller = yield* CurrentCaller
      const scope = scopeOf[endpoint.surface]
      if (!hasScope(caller, scope)) return yield* new InsufficientScope({ scope })
      if (!wellFormedId.test(id)) return yield* new VideoNotFound()
      yield* videos.delete(caller.org, id)
      return respond(json(200, { id, object: "video.deleted", deleted: true }))
    })

    return handlers
      .handleRaw("list", ({ urlParams }) => list(urlParams))
      .handleRaw("delete", ({ path: { id } }) => remove(id))
      .handleRaw("find", ({ path: { id } }) =>
        Effect.map(find(id), (video) =>
          respond(json(200, videoJson(video), resultHeaders({ replayed: false, sandbox: video.sandbox })))
        )
      )
      .handleRaw("content", ({ path: { id } }) =>
        Effect.gen(function* () {
          const video = yield* find(id)
          const location = yield* contentOf(video)
          const headers = { location, "content-length": "0" }
          return HttpServerResponse.empty({
            status: 302,
            headers: { ...headers, ...resultHeaders({ replayed: false, sandbox: video.sandbox }) }
          })
        })
      )
  })
)
