import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { VideoAsk } from "../../domain/Video.ts"
import { isAbsent, isArray, type JsonObject } from "../body/Fields.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decoder } from "../schema/Decoding.ts"
import { VideoCreateRequest } from "./Schema.ts"

const decode = decoder(VideoCreateRequest)

export const decodeVideoBody = (body: unknown): Either.Either<VideoAsk, InvalidRequest> =>
  Either.map(decode(body), ({ duration, image, input_reference, model, prompt, seconds }) => ({
    model,
    prompt,
    seconds: seconds ?? duration ?? undefined,
    references: [image, input_reference].find((references) => references?.length) ?? []
  }))

const asList = (value: unknown): ReadonlyArray<unknown> => {
  if (isAbsent(value)) return []
  return isArray(value) ? value : [value]
}

/** The body that a form stands for: what is no text in JSON is none here, and files are bytes. */
export const videoForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const { "input_reference[file_id]": file_id, "input_reference[image_url]": image_url, ...body } = formObject(parts)
  const named = isAbsent(file_id) && isAbsent(image_url) ? [] : [{ file_id, image_url }]
  return {
    ...body,
    n: body.n === "1" ? 1 : body.n,
    input_reference: [...asList(body.input_reference), ...named]
  }
}
