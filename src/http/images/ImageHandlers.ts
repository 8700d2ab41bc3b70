import { Effect, Either } from "effect"
import { ImageGenerations, type ImageResult } from "../../services/images/ImageGenerations.ts"
import { Base64Field, jsonChunks } from "../../services/media/Base64.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { monotonicMillis } from "../../services/runtime/System.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { idempotencyKeyOf } from "../admission/RequestContext.ts"
import { Limits, readJson, readJsonOrForm } from "../body/BodyReader.ts"
import { chargeHeader, json, jsonInPieces, resultHeaders } from "../HttpAnswer.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { editImage, generateImage, imageForm, makeImageReader } from "./ImageBody.ts"
import { decodeReferences } from "./ImageReferences.ts"

const endpoint = { surface: "image", admitsWithHold: false } as const

/** Keeps the order of fields fixed, because a replay must equal the first response byte for byte. */
const imageJson = ({ created, image: { bytes, url }, revisedPrompt, size }: ImageResult) => ({
  created,
  ...(size === undefined ? {} : { size }),
  data: [
    {
      ...(url === undefined ? {} : { url }),
      ...(bytes === undefined ? {} : { b64_json: new Base64Field(bytes) }),
      ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt })
    }
  ]
})

export const imageEndpoints = Effect.gen(function* () {
  const ids = yield* Ids
  const images = yield* ImageGenerations
  const limits = yield* Limits
  // A separate function reads the body, so the body's memory is freed before the generation starts.
  const readImage = yield* makeImageReader

  const answer = Effect.fnUntraced(function* (
    { headers, record, request, reserveMemory }: Admission,
    { params, selection }: Effect.Effect.Success<ReturnType<typeof readImage>>
  ) {
    const input = { params, idempotencyKey: idempotencyKeyOf(request), record }
    const result = Either.isRight(selection)
      ? yield* images.generate({ ...input, ...selection.right, reserveMemory })
      : yield* Effect.flatMap(
          images.replay(input),
          Effect.mapError(() => selection.left)
        )
    record.add({ type: "answered", at: yield* monotonicMillis })
    const answerHeaders = { ...headers(), ...resultHeaders(result), ...chargeHeader(result.charge) }
    return result.image.bytes === undefined
      ? json(200, imageJson(result), answerHeaders)
      : jsonInPieces(200, jsonChunks(imageJson(result), ids.unguessable()), answerHeaders)
  })

  const generate = (admission: Admission) =>
    readJson(admission, limits.mediaBodyBytes).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => readImage(admission, body, false)),
      Effect.flatMap((request) => answer(admission, request))
    )
  const edit = (admission: Admission) =>
    readJsonOrForm(admission, limits.mediaBodyBytes, imageForm).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => readImage(admission, body, true)),
      Effect.flatMap((request) => answer(admission, request))
    )

  return {
    generate: { ...endpoint, path: servedPath(generateImage), handle: generate } satisfies Endpoint,
    edit: { ...endpoint, path: servedPath(editImage), handle: edit } satisfies Endpoint
  }
})
