import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect, Predicate } from "effect"
import { ModelNotFound } from "../../domain/Failure.ts"
import { variantFor } from "../../domain/ImageRules.ts"
import { Catalog } from "../../services/Catalog.ts"
import { Ids } from "../../services/Ids.ts"
import { ImageGenerations, type ImageResult } from "../../services/ImageGenerations.ts"
import { InFlight } from "../../services/InFlight.ts"
import { Encoded, jsonPieces } from "../../services/Pieces.ts"
import { Api } from "../Api.ts"
import { type Body, readJson, readJsonOrForm } from "../Body.ts"
import { type Admitted, Generating } from "../Generating.ts"
import { decodeImageBody, imageForm } from "../ImageBody.ts"
import { Limits } from "../Limits.ts"
import { keyOf, marks } from "../Repeatable.ts"
import { json, jsonInPieces } from "../Respond.ts"

const endpoint = { surface: "image", scope: "images", rate: "take" } as const

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

export const ImagesHandlers = HttpApiBuilder.group(
  Api,
  "images",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const generating = yield* Generating
    const ids = yield* Ids
    const images = yield* ImageGenerations
    const inFlight = yield* InFlight
    const limits = yield* Limits

    const answer = Effect.fnUntraced(function* (
      { headers, record, request }: Admitted,
      body: unknown,
      needsReference: boolean
    ) {
      // The log names the model of a request that is refused, too.
      if (Predicate.hasProperty(body, "model") && Predicate.isString(body.model)) record.model = body.model
      const ask = yield* decodeImageBody(body, { needsReference })
      const model = catalog.find(ask.model)
      if (model?.surface !== "image") return yield* new ModelNotFound({ model: ask.model, surface: "image" })
      const variant = yield* variantFor(model, ask)
      const result = yield* images.generate({ model, variant, ask, idempotencyKey: keyOf(request), record })
      record.firstByteAt = yield* Clock.currentTimeMillis
      const all = { ...headers, ...marks(result) }
      return "url" in result.image
        ? json(200, imageJson(result), all)
        : jsonInPieces(200, jsonPieces(imageJson(result), ids.uuid()), all)
    })

    const generate = (admitted: Admitted) =>
      Effect.flatMap(inFlight.receive(readJson(admitted.request, limits.mediaBodyBytes)), (body) =>
        answer(admitted, body, false)
      )
    const edit = (admitted: Admitted) =>
      Effect.flatMap(inFlight.receive(readJsonOrForm(admitted.request, limits.mediaBodyBytes)), (body) =>
        answer(admitted, fieldsOf(body), true)
      )

    return handlers
      .handleRaw("generate", () => generating.run(endpoint, generate))
      .handleRaw("edit", () => generating.run(endpoint, edit))
  })
)
