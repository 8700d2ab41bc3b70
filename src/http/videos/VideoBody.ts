import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Effect, Either, Predicate, Schema } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import { between, described, Integer, matching, optional, upTo } from "../../domain/Constraints.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import { longestUrl } from "../../domain/Media.ts"
import type { Model } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import type { VideoParams } from "../../domain/VideoRules.ts"
import { secondsFor } from "../../domain/VideoRules.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { VideoTask } from "../../services/videos/Create.ts"
import type { Admission } from "../admission/Admission.ts"
import { attribute } from "../admission/Attribution.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { isAbsent, isArray, type JsonObject } from "../body/Guards.ts"
import type { Part } from "../body/Multipart.ts"
import {
  Conflict,
  Forbidden,
  GenerationErrors,
  Internal,
  NoSuchVideo,
  NotCompleted,
  NotFinished,
  ReadErrors,
  WrongQuery
} from "../errors/Schemas.ts"
import { decodeReferences, Files, Frames, imageInBrackets, References } from "../images/ReferenceImages.ts"
import { decoder, problem } from "../schema/Decoding.ts"
import { formOf, inForm, jsonOf } from "../schema/FormFields.ts"
import { Authenticated, MediaHeaders } from "../schema/Headers.ts"
import { parameter } from "../schema/Query.ts"
import { endUser, httpUrl, modelOf, n, promptFor } from "../schema/SharedFields.ts"

const model = modelOf("a video model")
const prompt = promptFor("The scene.")
const digits = String.raw`-?\d{1,400}`

/** Its host is judged once the body is read. */
const WebhookUrl = matching(new RegExp(`^${httpUrl}`))
  .pipe(upTo(longestUrl))
  .annotations(problem(`must be an http or https URL of at most ${longestUrl} characters`))
const FormWebhookUrl = matching(new RegExp(`^(?:${httpUrl}|$)`)).pipe(upTo(longestUrl))

/** `domain/VideoRules.ts` moves it to a length that the model has. */
const Length = Schema.transform(Schema.Union(Integer, matching(new RegExp(`^${digits}$`))), Schema.Number, {
  strict: true,
  decode: (length) => Math.min(Math.max(Number(length), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER),
  encode: (length) => length
}).annotations(problem("must be an integer"))
const FormLength = matching(new RegExp(`^(?:${digits})?$`))

const image = "The reference frame; of several the first is used. Some models require one, some take none."
const inputReference = "Alias of `image`, which wins when both are given."

/** A wrong alias is refused even where it is overruled. */
export const VideoCreateRequest = Schema.Struct({
  model,
  prompt,
  image: optional(References, image),
  input_reference: optional(Frames, inputReference),
  seconds: optional(
    Length,
    "The clip's length. Moved to the nearest one that the model has, ties to the shorter; which it has is in its `params`."
  ).pipe(inForm(FormLength)),
  duration: optional(Length, "Alias of `seconds`, which wins when both are given.").pipe(inForm(FormLength)),
  webhook_url: optional(
    WebhookUrl,
    "Where to send the video once it is over, signed, beside the organization's webhook endpoints. A public http or https URL."
  ).pipe(inForm(FormWebhookUrl)),
  n,
  ...endUser
}).annotations({ identifier: "VideoCreateRequest" })

const VideoCreateForm = formOf(VideoCreateRequest.fields, {
  image: described(Files, image),
  "image[]": imageInBrackets,
  input_reference: described(Files, inputReference),
  "input_reference[image_url]": described(Schema.String, "The same for a frame that is no file."),
  "input_reference[file_id]": described(Schema.Literal(""), "Not supported.")
})

const Video = Schema.Struct({
  id: Schema.String.annotations({ description: "Starts with `vid_`." }),
  object: Schema.Literal("video"),
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  progress: Integer.pipe(between(0, 100)).annotations({
    description:
      "About how many percent are done, as far as the provider tells: 0 where it does not, 100 once `completed`."
  }),
  created_at: Integer.annotations({ description: "Unix seconds." }),
  completed_at: described(Integer, "Unix seconds; once `completed` or `failed`."),
  seconds: described(Integer, "The clip's length, which its price was computed on."),
  charge_usd: described(
    Schema.Number,
    "What it was charged, in USD; once `completed`. A refund is an entry of its own and does not change it."
  ),
  url: described(Schema.String, "A permanent link to the mp4; once `completed`."),
  data: described(Schema.Array(Schema.Struct({ url: Schema.String })), "The same link; once `completed`."),
  error: described(
    Schema.Struct({
      code: Schema.String.annotations({
        description: "`content_policy_violation`, `upstream_error`, `timeout` or `internal_error`."
      }),
      message: Schema.String
    }),
    "Once `failed`."
  )
}).annotations({ identifier: "Video", description: "The video." })

const EdgeId = (edge: string) =>
  Schema.NullOr(Schema.String).annotations({ description: `The id of the ${edge} video; null without one.` })

const VideoList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Video),
  first_id: EdgeId("first"),
  last_id: EdgeId("last"),
  has_more: Schema.Boolean.annotations({ description: "Whether more follow `last_id`." })
}).annotations({ identifier: "VideoList", description: "A page of the organization's videos." })

const DeletedVideo = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("video.deleted"),
  deleted: Schema.Literal(true)
}).annotations({ identifier: "DeletedVideo" })

const Id = Schema.String.annotations({
  description: "The video's id.",
  examples: ["vid_9c2d6a4c1f0b4d5e8a7f3b2c1d0e9f8a"]
})

const defaultLimit = 20
const largestLimit = 100

const Limit = Schema.transform(
  Schema.Union(Schema.String, Schema.Array(Schema.String)).annotations({
    jsonSchema: { type: "integer", minimum: 1, maximum: largestLimit, default: defaultLimit }
  }),
  Schema.Number,
  {
    strict: true,
    decode: (given) => {
      const limit = Predicate.isString(given) && given.trim() !== "" ? Number(given) : Number.NaN
      return Number.isNaN(limit) ? defaultLimit : Math.trunc(Math.min(Math.max(limit, 1), largestLimit))
    },
    encode: String
  }
)

export const noSuchCursor = "must be the id of a video of your organization"

export const VideoListQuery = Schema.Struct({
  limit: Schema.optionalWith(Limit, { default: () => defaultLimit }).annotations({
    description: "Moved into its range; 20 where it is no number."
  }),
  order: parameter("order", Schema.Literal("asc", "desc"), "must be asc or desc", "`desc`, the default: newest first."),
  after: parameter(
    "after",
    Schema.String,
    noSuchCursor,
    "The id of the video before the page: the last one's `last_id`."
  )
})

export const createVideo = HttpApiEndpoint.post("create", "/videos")
  .setHeaders(MediaHeaders)
  .setPayload(
    Schema.Union(
      VideoCreateRequest,
      HttpApiSchema.Multipart(VideoCreateForm).annotations({ identifier: "VideoCreateForm" })
    )
  )
  .addSuccess(Video.annotations({ ...HttpApiSchema.annotations({ status: 202 }), identifier: "Video" }))
  .addError(GenerationErrors)
  .addError(Conflict)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createVideo",
      summary: "Create a video",
      description:
        "Answers with the video in `queued`; get it every few seconds until it is `completed` or `failed`. Only a completed video is charged."
    })
  )

export const VideoContentQuery = Schema.Struct({
  variant: parameter(
    "variant",
    Schema.Literal("video"),
    "must be video: there are no thumbnails and no spritesheets",
    "Only `video`, the default."
  )
})

const list = HttpApiEndpoint.get("list", "/videos")
  .setUrlParams(VideoListQuery)
  .addSuccess(VideoList)
  .addError(ReadErrors)
  .addError(WrongQuery)
  .annotateContext(OpenApi.annotations({ identifier: "listVideos", summary: "List videos" }))

const find = HttpApiEndpoint.get("find", "/videos/:id")
  .setPath(Schema.Struct({ id: Id }))
  .addSuccess(Video)
  .addError(ReadErrors)
  .addError(NoSuchVideo)
  .annotateContext(OpenApi.annotations({ identifier: "getVideo", summary: "Get a video" }))

const content = HttpApiEndpoint.get("content", "/videos/:id/content")
  .setPath(Schema.Struct({ id: Id }))
  .setUrlParams(VideoContentQuery)
  .addSuccess(HttpApiSchema.Empty(302).annotations({ description: "The mp4 is at `location`, the video's `url`." }))
  .addError(ReadErrors)
  .addError(WrongQuery)
  .addError(NotCompleted)
  .addError(NoSuchVideo)
  .annotateContext(OpenApi.annotations({ identifier: "getVideoContent", summary: "Download a video" }))

const remove = HttpApiEndpoint.del("delete", "/videos/:id")
  .setPath(Schema.Struct({ id: Id }))
  .addSuccess(DeletedVideo)
  .addError(Forbidden)
  .addError(Internal)
  .addError(NoSuchVideo)
  .addError(NotFinished)
  .annotateContext(OpenApi.annotations({ identifier: "deleteVideo", summary: "Delete a video" }))

export const StoredVideos = HttpApiGroup.make("videos")
  .annotate(OpenApi.Description, "A video takes minutes: create it, get it until it is completed, then download it.")
  .add(list)
  .add(find)
  .add(content)
  .add(remove)
  .middleware(Authenticated)

export const Videos = StoredVideos.add(createVideo)

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
  const {
    "input_reference[file_id]": file_id,
    "input_reference[image_url]": image_url,
    ...body
  } = jsonOf(VideoCreateRequest.fields, parts)
  const named = isAbsent(file_id) && isAbsent(image_url) ? [] : [{ file_id, image_url }]
  return { ...body, input_reference: [...asList(body.input_reference), ...named] }
}

/** Decodes a body, and finds what it is offered. */
export const makeVideoReader = Effect.gen(function* () {
  const catalog = yield* Catalog

  const offerFor = (
    params: VideoParams,
    mayUse: (model: Model) => boolean,
    at: number
  ): Either.Either<Pick<VideoTask, "model" | "seconds">, Failure> => {
    const model = catalog.current.findAt(params.model, at)
    if (model?.surface !== "video") return Either.left(unknownModel(catalog.current, params.model, "video", mayUse))
    return Either.map(secondsFor(model, params), (seconds) => ({ model, seconds }))
  }

  return Effect.fnUntraced(function* (admission: Admission, received: unknown) {
    const { record } = admission
    const { at, caller } = record.facts
    const body = yield* decodeReferences(received)
    const refusal = attribute(admission, body)
    if (refusal !== undefined) return yield* refusal
    const decoded = yield* decodeVideoBody(body)
    const found = catalog.current.findAt(decoded.model, at)
    const params = found?.surface === "video" ? { ...decoded, model: found.id } : decoded
    record.add({ type: "resolved", model: found?.id ?? decoded.model })
    yield* requireAllowed(caller, "video", found)
    return { params, offer: offerFor(params, ({ id }) => mayUseModel(caller, id), at) }
  })
})
