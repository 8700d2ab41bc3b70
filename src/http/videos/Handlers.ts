import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect, Predicate } from "effect"
import { ModelNotFound, VideoNotFound } from "../../domain/Failure.ts"
import { secondsFor } from "../../domain/Video.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { isSandbox } from "../../services/catalog/Rules.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { VideoJobs } from "../../services/videos/VideoJobs.ts"
import { ReadApi } from "../Api.ts"
import type { Admitted, Endpoint } from "../admission/Admission.ts"
import { idempotencyKeyOf } from "../admission/IdempotencyKey.ts"
import { type Body, readJsonOrForm } from "../body/Body.ts"
import { modelIn } from "../body/Fields.ts"
import { decodeReferences } from "../body/LargeReferences.ts"
import { Limits } from "../body/Limits.ts"
import * as Answer from "../response/Answer.ts"
import { json } from "../response/Respond.ts"
import { resultHeaders } from "../response/ResultHeaders.ts"
import { CurrentCaller } from "../schema/Authenticated.ts"
import { contentOf, videoJson } from "./VideoAnswer.ts"
import { decodeVideoBody, videoForm } from "./VideoBody.ts"

const endpoint = { surface: "video", scope: "videos", admitsWithHold: false } as const

const fieldsOf = (body: Body): unknown => (body._tag === "Form" ? videoForm(body.parts) : body.value)

const defaultLimit = 20
const largestLimit = 100

const limitOf = (asked: string | ReadonlyArray<string> | undefined): number => {
  const limit = Predicate.isString(asked) && asked.trim() !== "" ? Number(asked) : Number.NaN
  return Number.isNaN(limit) ? defaultLimit : Math.trunc(Math.min(Math.max(limit, 1), largestLimit))
}

/** Of an id that none can have the database is not asked; it has no NUL, for one. */
const wellFormedId = /^vid_[\w-]{1,128}$/

export const videoEndpoint = Effect.gen(function* () {
  const catalog = yield* Catalog
  const limits = yield* Limits
  const videos = yield* VideoJobs

  const read = Effect.fnUntraced(function* (admitted: Admitted) {
    const { record } = admitted
    const received = yield* readJsonOrForm(admitted, limits.mediaBodyBytes)
    const body = yield* decodeReferences(fieldsOf(received))
    record.model = modelIn(body)
    const ask = yield* decodeVideoBody(body)
    const model = catalog.find(ask.model)
    if (model?.surface !== "video") return yield* new ModelNotFound({ model: ask.model, surface: "video" })
    return { model, seconds: yield* secondsFor(model, ask), ask }
  })

  const create = Effect.fnUntraced(function* (admitted: Admitted) {
    const { headers, record, request } = admitted
    const asked = yield* read(admitted)
    const { replayed, video } = yield* videos.create({ ...asked, idempotencyKey: idempotencyKeyOf(request), record })
    record.firstByteAt = yield* Monotonic.millis
    const sandbox = record.route === undefined ? asked.model.routes.every(isSandbox) : isSandbox(record.route)
    return Answer.json(202, videoJson(video), {
      ...headers(),
      ...resultHeaders({ replayed, sandbox: video.sandbox || sandbox })
    })
  })

  return { ...endpoint, answer: create } satisfies Endpoint
})

export const VideosHandlers = HttpApiBuilder.group(
  ReadApi,
  "videos",
  Effect.fnUntraced(function* (handlers) {
    const videos = yield* VideoJobs

    const find = Effect.fnUntraced(function* (id: string) {
      const { org } = yield* CurrentCaller
      return wellFormedId.test(id) ? yield* videos.find(org, id) : yield* new VideoNotFound()
    })

    const list = Effect.fnUntraced(function* (limit: number) {
      const { org } = yield* CurrentCaller
      return yield* videos.list(org, limit)
    })

    return handlers
      .handleRaw("list", ({ urlParams }) =>
        Effect.map(list(limitOf(urlParams.limit)), (all) => json(200, { object: "list", data: all.map(videoJson) }))
      )
      .handleRaw("find", ({ path: { id } }) =>
        Effect.map(find(id), (video) =>
          json(200, videoJson(video), resultHeaders({ replayed: false, sandbox: video.sandbox }))
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
