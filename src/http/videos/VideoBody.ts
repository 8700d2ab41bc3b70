import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Effect, Either, Predicate, Schema } from "effect"
import { type Caller, mayUseModel } from "../../domain/ApiKey.ts"
import { between, describedField, Integer, matching, optional, upTo } from "../../domain/Constraints.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import { maxUrlLength } from "../../domain/Media.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { chooseSeconds, type VideoParams } from "../../domain/VideoRules.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { VideoTask } from "../../services/videos/VideoCreation.ts"
import { type Admission, requireAllowed } from "../admission/Admission.ts"
import { attribute } from "../admission/RequestContext.ts"
import { isAbsent, isArray, type JsonObject } from "../body/Guards.ts"
import type { Part } from "../body/Multipart.ts"
import { Conflict, GenerationErrors, Internal, InvalidQuery, ReadErrors, response } from "../errors/ErrorMessages.ts"
import { decodeReferences, Files, Frames, imageInBrackets, References } from "../images/ImageReferences.ts"
import { makeBodyDecoder, problem } from "../schema/Decoding.ts"
import { Authenticated, MediaHeaders } from "../schema/Headers.ts"
import { queryParameter } from "../schema/Query.ts"
import {
  endUserFields,
  formToJson,
  httpUrlPattern,
  modelField,
  n,
  promptField,
  toForm,
  withFormText
} from "../schema/SharedFields.ts"

const model = modelField("a video model")
const prompt = promptField("A description of the video.")
const digits = String.raw`-?\d{1,400}`

/** Accepts a URL with any host, because a later step checks the host. */
const WebhookUrl = matching(new RegExp(`^${httpUrlPattern}`))
  .pipe(upTo(maxUrlLength))
  .annotations(problem(`must be an http or https URL of at most ${maxUrlLength} characters`))
const FormWebhookUrl = matching(new RegExp(`^(?:${httpUrlPattern}|$)`)).pipe(upTo(maxUrlLength))

/** Accepts any integer, because `domain/VideoRules.ts` rounds it to a length that the model supports. */
const Length = Schema.transform(Schema.Union(Integer, matching(new RegExp(`^${digits}$`))), Schema.Number, {
  strict: true,
  decode: (length) => Math.min(Math.max(Number(length), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER),
  encode: (length) => length
}).annotations(problem("must be an integer"))
const FormLength = matching(new RegExp(`^(?:${digits})?$`))

const imageDescription =
  "The reference frame. If you send several, the first one is used. Some models require one, others accept none."
const inputReferenceDescription = "Alias of `image`, which overrides it."

/** Has aliases for some fields. An invalid alias is refused even if another field overrides it. */
export const VideoCreateRequest = Schema.Struct({
  model,
  prompt,
  image: optional(References, imageDescription),
  input_reference: optional(Frames, inputReferenceDescription),
  seconds: optional(
    Length,
    "The clip's length. The gateway uses the nearest length of the model, or the shorter of two equally near ones. The model's `params` list its lengths."
  ).pipe(withFormText(FormLength)),
  duration: optional(Length, "Alias of `seconds`, which overrides it.").pipe(withFormText(FormLength)),
  webhook_url: optional(
    WebhookUrl,
    "Receives a signed event when the video completes or fails, in addition to the organization's webhook endpoints. A public http or https URL."
  ).pipe(withFormText(FormWebhookUrl)),
  n,
  ...endUserFields
}).annotations({ identifier: "VideoCreateRequest" })

const VideoCreateForm = toForm(VideoCreateRequest.fields, {
  image: describedField(Files, imageDescription),
  "image[]": imageInBrackets,
  input_reference: describedField(Files, inputReferenceDescription),
  "input_reference[image_url]": describedField(Schema.String, "The URL or base64 of a frame that is not a file."),
  "input_reference[file_id]": describedField(Schema.Literal(""), "Not supported.")
})

const Video = Schema.Struct({
  id: Schema.String.annotations({ description: "Starts with `vid_`." }),
  object: Schema.Literal("video"),
  model: Schema.String,
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  progress: Integer.pipe(between(0, 100)).annotations({
    description: "A percentage. It is 0 if the provider reports none, and 100 when `completed`."
  }),
  created_at: Integer.annotations({ description: "Unix seconds." }),
  completed_at: describedField(Integer, "Unix seconds. Present when `completed` or `failed`."),
  seconds: describedField(Integer, "The clip's length, which determines the price."),
  charge_usd: describedField(
    Schema.Number,
    "The charge in USD. Present when `completed`. A refund does not change it."
  ),
  url: describedField(Schema.String, "A permanent link to the mp4. Present when `completed`."),
  data: describedField(Schema.Array(Schema.Struct({ url: Schema.String })), "The same link. Present when `completed`."),
  error: describedField(
    Schema.Struct({
      code: Schema.String.annotations({
        description: "`content_policy_violation`, `upstream_error`, `timeout` or `internal_error`."
      }),
      message: Schema.String
    }),
    "Present when `failed`."
  )
}).annotations({ identifier: "Video", description: "The video." })

const EdgeId = (position: string) =>
  Schema.NullOr(Schema.String).annotations({ description: `The id of the ${position} video, or null.` })

const VideoList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Video),
  first_id: EdgeId("first"),
  last_id: EdgeId("last"),
  has_more: Schema.Boolean.annotations({ description: "Whether more videos follow `last_id`." })
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
const maxLimit = 100

const Limit = Schema.transform(
  Schema.Union(Schema.String, Schema.Array(Schema.String)).annotations({
    jsonSchema: { type: "integer", minimum: 1, maximum: maxLimit, default: defaultLimit }
  }),
  Schema.Number,
  {
    strict: true,
    decode: (value) => {
      const limit = Predicate.isString(value) && value.trim() !== "" ? Number(value) : Number.NaN
      return Number.isNaN(limit) ? defaultLimit : Math.trunc(Math.min(Math.max(limit, 1), maxLimit))
    },
    encode: String
  }
)

export const unknownCursorProblem = "must be the id of a video of your organization"

export const VideoListQuery = Schema.Struct({
  limit: Schema.optionalWith(Limit, { default: () => defaultLimit }).annotations({
    description: "Clamped to its range. A value that is not a number counts as 20."
  }),
  order: queryParameter(
    "order",
    Schema.Literal("asc", "desc"),
    "must be asc or desc",
    "`desc` (the default) lists the newest first."
  ),
  after: queryParameter(
    "after",
    Schema.String,
    unknownCursorProblem,
    "The id of a video. The page starts after it. Send the `last_id` of the previous page."
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
        "Returns the video with the status `queued`. Poll every 5 seconds until `status` is `completed` or `failed`. Only a completed video is charged."
    })
  )

export const VideoContentQuery = Schema.Struct({
  variant: queryParameter(
    "variant",
    Schema.Literal("video"),
    "must be video: there are no thumbnails and no spritesheets",
    "Must be `video`, which is the default."
  )
})

const NoSuchVideo = response("The organization has no such video.", "VideoNotFound")

const listEndpoint = HttpApiEndpoint.get("list", "/videos")
  .setUrlParams(VideoListQuery)
  .addSuccess(VideoList)
  .addError(ReadErrors)
  .addError(InvalidQuery)
  .annotateContext(OpenApi.annotations({ identifier: "listVideos", summary: "List videos" }))

const findEndpoint = HttpApiEndpoint.get("find", "/videos/:id")
  .setPath(Schema.Struct({ id: Id }))
  .addSuccess(Video)
  .addError(ReadErrors)
  .addError(NoSuchVideo)
  .annotateContext(OpenApi.annotations({ identifier: "getVideo", summary: "Get a video" }))

const contentEndpoint = HttpApiEndpoint.get("content", "/videos/:id/content")
  .setPath(Schema.Struct({ id: Id }))
  .setUrlParams(VideoContentQuery)
  .addSuccess(HttpApiSchema.Empty(302).annotations({ description: "The mp4 is at `location`, the video's `url`." }))
  .addError(ReadErrors)
  .addError(InvalidQuery)
  .addError(response("The video is not completed.", "InvalidRequest"))
  .addError(NoSuchVideo)
  .annotateContext(OpenApi.annotations({ identifier: "getVideoContent", summary: "Download a video" }))

const removeEndpoint = HttpApiEndpoint.del("delete", "/videos/:id")
  .setPath(Schema.Struct({ id: Id }))
  .addSuccess(DeletedVideo)
  .addError(
    response(
      "The key may not use this endpoint type, or the client's address is blocked.",
      "InsufficientScope",
      "AddressBlocked"
    )
  )
  .addError(Internal)
  .addError(NoSuchVideo)
  .addError(response("The video is neither completed nor failed.", "VideoNotFinished"))
  .annotateContext(OpenApi.annotations({ identifier: "deleteVideo", summary: "Delete a video" }))

export const StoredVideos = HttpApiGroup.make("videos")
  .annotate(
    OpenApi.Description,
    "A video takes minutes. Create it, poll until `status` is `completed`, then download it."
  )
  .add(listEndpoint)
  .add(findEndpoint)
  .add(contentEndpoint)
  .add(removeEndpoint)
  .middleware(Authenticated)

export const Videos = StoredVideos.add(createVideo)

const decode = makeBodyDecoder(VideoCreateRequest)

export const decodeVideoBody = (body: unknown): Either.Either<VideoParams, InvalidRequest> =>
  Either.map(decode(body), ({ duration, image, input_reference, model, prompt, seconds, webhook_url }) => ({
    model,
    prompt,
    seconds: seconds ?? duration ?? undefined,
    references: [image, input_reference].find((references) => references?.length) ?? [],
    webhookUrl: webhook_url ?? undefined
  }))

const toArray = (value: unknown): ReadonlyArray<unknown> => {
  if (isAbsent(value)) return []
  return isArray(value) ? value : [value]
}

export const videoForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const {
    "input_reference[file_id]": file_id,
    "input_reference[image_url]": image_url,
    ...body
  } = formToJson(VideoCreateRequest.fields, parts)
  const frames = isAbsent(file_id) && isAbsent(image_url) ? [] : [{ file_id, image_url }]
  return { ...body, input_reference: [...toArray(body.input_reference), ...frames] }
}

/**
 * Returns a function that decodes a body, and selects its model and length. If the model cannot serve the request, the failure
 * is in `selection` and decoding still succeeds, because an idempotent replay must work even without the model.
 */
export const makeVideoReader = Effect.gen(function* () {
  const catalog = yield* Catalog

  const select = (
    params: VideoParams,
    caller: Caller,
    at: number
  ): Either.Either<Pick<VideoTask, "model" | "seconds">, Failure> => {
    const model = catalog.current.findAt(params.model, at, caller.discountPercent)
    if (model?.surface !== "video")
      return Either.left(unknownModel(catalog.current, params.model, "video", ({ id }) => mayUseModel(caller, id)))
    return Either.map(chooseSeconds(model, params), (seconds) => ({ model, seconds }))
  }

  return Effect.fnUntraced(function* (admission: Admission, json: unknown) {
    const { record } = admission
    const { at, caller } = record.facts
    const body = yield* decodeReferences(json)
    const refusal = attribute(admission, body)
    if (refusal !== undefined) return yield* refusal
    const bodyParams = yield* decodeVideoBody(body)
    const model = catalog.current.findAt(bodyParams.model, at)
    const params = model?.surface === "video" ? { ...bodyParams, model: model.id } : bodyParams
    record.add({ type: "resolved", model: model?.id ?? bodyParams.model })
    yield* requireAllowed(caller, "video", model)
    return { params, selection: select(params, caller, at) }
  })
})
