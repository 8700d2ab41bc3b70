import { Effect, Either } from "effect"
import { ImageGenerations, type ImageResult } from "../../services/images/ImageGenerations.ts"
import { Encoded, jsonChunks } from "../../services/media/Chunks.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { chargeHeader, json, jsonInPieces, resultHeaders } from "../Answer.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { idempotencyKeyOf } from "../admission/RequestContext.ts"
import { Limits, readJson, readJsonOrForm } from "../body/BodyReader.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { editImage, generateImage, imageForm, makeImageReader } from "./ImageBody.ts"
import { decodeReferences } from "./ReferenceImages.ts"

const endpoint = { surface: "image", admitsWithHold: false } as const

/** A replay equals the first response to the byte. */
const imageJson = ({ created, image: { bytes, url }, revisedPrompt, size }: ImageResult) => ({
  created,
  ...(size === undefined ? {} : { size }),
  data: [
    {
      ...(url === undefined ? {} : { url }),
      ...(bytes === undefined ? {} : { b64_json: new Encoded(bytes) }),
      ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt })
    }
  ]
})

export const imageEndpoints = Effect.gen(function* () {
  const ids = yield* Ids
  const images = yield* ImageGenerations
  const limits = yield* Limits
  // A function of its own, so that the body is freed before the picture is made.
  const read = yield* makeImageReader

  const answer = Effect.fnUntraced(function* (
    { headers, record, request, reserveMemory }: Admission,
    { offer, params }: Effect.Effect.Success<ReturnType<typeof read>>
  ) {
    const repeated = { params, idempotencyKey: idempotencyKeyOf(request), record }
    const result = Either.isRight(offer)
      ? yield* images.generate({ ...repeated, ...offer.right, reserveMemory })
      : yield* Effect.flatMap(
          images.replay(repeated),
          Effect.mapError(() => offer.left)
        )
    record.add({ type: "answered", at: yield* Monotonic.millis })
    const all = { ...headers(), ...resultHeaders(result), ...chargeHeader(result.charge) }
    return result.image.bytes === undefined
      ? json(200, imageJson(result), all)
      : jsonInPieces(200, jsonChunks(imageJson(result), ids.unguessable()), all)
  })

  const generate = (admission: Admission) =>
    readJson(admission, limits.mediaBodyBytes).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => read(admission, body, false)),
      Effect.flatMap((decoded) => answer(admission, decoded))
    )
  const edit = (admission: Admission) =>
    readJsonOrForm(admission, limits.mediaBodyBytes, imageForm).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => read(admission, body, true)),
      Effect.flatMap((decoded) => answer(admission, decoded))
    )

  return {
    generate: { ...endpoint, path: servedPath(generateImage), handle: generate } satisfies Endpoint,
    edit: { ...endpoint, path: servedPath(editImage), handle: edit } satisfies Endpoint
  }
})
