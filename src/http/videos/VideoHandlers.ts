import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { Effect, Either } from "effect"
import { hasScope, scopeOf } from "../../domain/ApiKey.ts"
import { InsufficientScope, InvalidRequest, VideoNotFound } from "../../domain/Failure.ts"
import { isServedBySandbox } from "../../services/catalog/CatalogRules.ts"
import { monotonicMillis } from "../../services/runtime/System.ts"
import { type Video, VideoJobs } from "../../services/videos/VideoJobs.ts"
import { videoJson } from "../../services/videos/VideoState.ts"
import { ResourceApi } from "../Api.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { idempotencyKeyOf } from "../admission/RequestContext.ts"
import { Limits, readJsonOrForm } from "../body/BodyReader.ts"
import { refusalAt } from "../body/Guards.ts"
import { json, respond, resultHeaders } from "../HttpAnswer.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import { createVideo, makeVideoReader, unknownCursorProblem, type VideoListQuery, videoForm } from "./VideoBody.ts"

export const contentOf = ({ status, url }: Pick<Video, "status" | "url">): Either.Either<string, InvalidRequest> =>
  status === "completed" && url !== undefined
    ? Either.right(url)
    : Either.left(new InvalidRequest({ message: "The video is not completed.", param: null }))

const endpoint = { path: servedPath(createVideo), surface: "video", admitsWithHold: false } as const

/** An id of any other form returns 404 without a database call, because the database rejects NUL characters. */
const wellFormedId = /^vid_[\w-]{1,128}$/

export const videoEndpoint = Effect.gen(function* () {
  const limits = yield* Limits
  const readVideo = yield* makeVideoReader
  const videos = yield* VideoJobs

  const create = Effect.fnUntraced(function* (admission: Admission) {
    const { headers, record, request } = admission
    const { params, selection } = yield* Effect.flatMap(
      readJsonOrForm(admission, limits.mediaBodyBytes, videoForm),
      (json) => readVideo(admission, json)
    )
    const input = { params, idempotencyKey: idempotencyKeyOf(request), record }
    const { replayed, video } = Either.isRight(selection)
      ? yield* videos.create({ ...input, ...selection.right })
      : yield* Effect.flatMap(
          videos.replay(input),
          Effect.mapError(() => selection.left)
        )
    record.add({ type: "answered", at: yield* monotonicMillis })
    const routes = Either.isRight(selection) ? selection.right.model.routes : undefined
    const sandbox = isServedBySandbox(record.summary.route, routes)
    return json(202, videoJson(video), {
      ...headers(),
      ...resultHeaders({ replayed, sandbox: video.sandbox || sandbox })
    })
  })

  return { ...endpoint, handle: create } satisfies Endpoint
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
      const list = isId ? videos.list(org, limit + 1, { after, order }) : new VideoNotFound()
      const rows = yield* Effect.mapError(list, () => refusalAt("after", "after", unknownCursorProblem))
      const data = rows.slice(0, limit).map(videoJson)
      const [first_id, last_id] = [data.at(0)?.id ?? null, data.at(-1)?.id ?? null]
      return respond(json(200, { object: "list", data, first_id, last_id, has_more: rows.length > limit }))
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
