import { Effect } from "effect"
import { ModelNotFound } from "../../domain/Failure.ts"
import { variantFor } from "../../domain/Image.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { ImageGenerations, type ImageResult } from "../../services/images/ImageGenerations.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { Encoded, jsonPieces } from "../../services/runtime/Pieces.ts"
import type { Admitted, Endpoint } from "../admission/Admission.ts"
import { idempotencyKeyOf } from "../admission/IdempotencyKey.ts"
import { type Body, readJson, readJsonOrForm } from "../body/Body.ts"
import { modelIn } from "../body/Fields.ts"
import { decodeReferences } from "../body/LargeReferences.ts"
import { Limits } from "../body/Limits.ts"
import { json, jsonInPieces } from "../response/Answer.ts"
import { resultHeaders } from "../response/ResultHeaders.ts"
import { decodeImageBody, imageForm } from "./ImageBody.ts"

const endpoint = { surface: "image", scope: "images", admitsWithHold: false } as const

const fieldsOf = (body: Body): unknown => (body._tag === "Form" ? imageForm(body.parts) : body.value)

/** Always in the same order: a replay is equal to the first answer to the byte. */
const imageJson = ({ created, image, revisedPrompt }: ImageResult) => ({
  created,
  data: [
    {
      ...("url" in image ? image : { b64_json: new Encoded(image.bytes) }),
      ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt })
    }
  ]
})

export const imageEndpoints = Effect.gen(function* () {
  const catalog = yield* Catalog
  const ids = yield* Ids
  const images = yield* ImageGenerations
  const limits = yield* Limits

  // Apart from what follows, so that the body is let go of before the picture is made.
  const read = Effect.fnUntraced(function* ({ record }: Admitted, body: unknown, needsReference: boolean) {
    record.model = modelIn(body)
    const ask = yield* decodeImageBody(body, { needsReference })
    const model = catalog.find(ask.model)
    if (model?.surface !== "image") return yield* new ModelNotFound({ model: ask.model, surface: "image" })
    return { model, variant: yield* variantFor(model, ask), ask }
  })

  const answer = Effect.fnUntraced(function* (
    { headers, record, request }: Admitted,
    asked: Effect.Effect.Success<ReturnType<typeof read>>
  ) {
    const result = yield* images.generate({ ...asked, idempotencyKey: idempotencyKeyOf(request), record })
    record.firstByteAt = yield* Monotonic.millis
    const all = { ...headers(), ...resultHeaders(result) }
    return "url" in result.image
      ? json(200, imageJson(result), all)
      : jsonInPieces(200, jsonPieces(imageJson(result), ids.unguessable()), all)
  })

  const generate = (admitted: Admitted) =>
    readJson(admitted, limits.mediaBodyBytes).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => read(admitted, body, false)),
      Effect.flatMap((asked) => answer(admitted, asked))
    )
  const edit = (admitted: Admitted) =>
    readJsonOrForm(admitted, limits.mediaBodyBytes).pipe(
      Effect.flatMap((body) => decodeReferences(fieldsOf(body))),
      Effect.flatMap((body) => read(admitted, body, true)),
      Effect.flatMap((asked) => answer(admitted, asked))
    )

  return {
    generate: { ...endpoint, answer: generate } satisfies Endpoint,
    edit: { ...endpoint, answer: edit } satisfies Endpoint
  }
})
