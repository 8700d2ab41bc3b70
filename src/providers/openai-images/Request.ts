import { Struct } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { extensionOf, type Picture } from "../../domain/Media.ts"
import type { ImageRoute } from "../../domain/Model.ts"
import { Encoded, jsonPieces } from "../../services/runtime/Pieces.ts"
import type { UpstreamRequest } from "../client/Upstream.ts"
import { type FilePart, multipart } from "./Multipart.ts"
import type { Options } from "./Options.ts"

export interface WireFields extends Pick<Options, "quality" | "background" | "output_format" | "response_format"> {
  model: string
  prompt: string
  n: number
  size?: string
}

export interface WireGeneration extends WireFields, Pick<Options, "moderation"> {}

const encodeFields = (model: string, request: ImageRequest, options: Options): WireFields => {
  const size = options.sizes?.[request.resolution] ?? options.size
  return {
    model,
    prompt: request.prompt,
    n: 1,
    ...(size === undefined ? undefined : { size }),
    ...Struct.pick(options, "quality", "background", "output_format", "response_format")
  }
}

export const encodeGeneration = (model: string, request: ImageRequest, options: Options): WireGeneration => ({
  ...encodeFields(model, request, options),
  ...Struct.pick(options, "moderation")
})

export const encodeEdit = encodeFields

const fileParts = (references: ReadonlyArray<Picture>, name: string): ReadonlyArray<FilePart> =>
  references.map(({ bytes, type }, index) => {
    return { name, filename: `image-${index + 1}.${extensionOf[type]}`, type, bytes }
  })

const inJson = (references: ReadonlyArray<Picture>) => {
  const images = references.map(({ bytes, type }) => {
    return { type: "image_url", url: new Encoded(bytes, `data:${type};base64,`) }
  })
  return images.length === 1 ? { image: images[0] } : { images }
}

const texts = (fields: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])
  )

type Content = Pick<UpstreamRequest, "path" | "body" | "contentType">

const generation = (route: ImageRoute, request: ImageRequest, options: Options): Content => ({
  path: "/images/generations",
  body: JSON.stringify({ ...options.extra_body, ...encodeGeneration(route.model, request, options) })
})

const edit = (model: string, request: ImageRequest, options: Options, mark: string): Content => {
  const path = "/images/edits"
  const fields = { ...options.extra_body, ...options.extra_edit_body, ...encodeEdit(model, request, options) }
  if (options.edits === "json") return { path, body: jsonPieces({ ...fields, ...inJson(request.references) }, mark) }
  const files = fileParts(request.references, options.image_field ?? "image[]")
  return { path, ...multipart(mark, texts(fields), files) }
}

/** Undefined where the route cannot edit. The mark sets files apart: take one that nobody can guess. */
export const encodeContent = (
  route: ImageRoute,
  request: ImageRequest,
  options: Options,
  mark: string
): Content | undefined => {
  if (request.references.length === 0) return generation(route, request, options)
  return route.editModel === undefined ? undefined : edit(route.editModel, request, options, mark)
}
