import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { ImageAsk } from "../../domain/Image.ts"
import { isString, type JsonObject } from "../body/Fields.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decoder } from "../schema/Decoding.ts"
import { ImageEditRequest, ImageGenerationRequest } from "./Schema.ts"

const decodeGeneration = decoder(ImageGenerationRequest)
const decodeEdit = decoder(ImageEditRequest)

const isHd = (quality: unknown): boolean => isString(quality) && quality.toLowerCase() === "hd"

export const decodeImageBody = (
  body: unknown,
  { needsReference }: { readonly needsReference: boolean }
): Either.Either<ImageAsk, InvalidRequest> =>
  Either.map(
    needsReference ? decodeEdit(body) : decodeGeneration(body),
    ({ image, model, prompt, quality, resolution, response_format }) => ({
      model,
      prompt,
      references: image ?? [],
      resolution: resolution ?? (isHd(quality) ? "4K" : undefined),
      responseFormat: response_format ?? "url"
    })
  )

const jsonValues: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ["1", 1],
  ["false", false]
])

/** The body that a form stands for: what is no text in JSON is none here, and files are bytes. */
export const imageForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const body = formObject(parts)
  const decode = (value: unknown) => jsonValues.get(value) ?? value
  return { ...body, n: decode(body.n), stream: decode(body.stream) }
}
