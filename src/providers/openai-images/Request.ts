import { Struct } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { extensionOf, type Picture } from "../../domain/Media.ts"
import type { ImageRoute } from "../../domain/Model.ts"
import { type Chunks, chunksOf, Encoded, jsonChunks } from "../../services/media/Chunks.ts"
import type { UpstreamRequest } from "../client/Upstream.ts"
import type { Options } from "./Options.ts"

export interface WireFields extends Pick<Options, "quality" | "background" | "output_format" | "response_format"> {
  model: string
  prompt: string
  n: number
  size?: string
}

export interface WireGeneration extends WireFields, Pick<Options, "moderation"> {}

const encodeFields = (model: string, request: ImageRequest, options: Options): WireFields => {
  const size = request.shape?.size ?? options.sizes?.[request.resolution] ?? options.size
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

interface FilePart {
  readonly name: string
  readonly filename: string
  readonly type: string
  readonly bytes: Uint8Array
}

const quote = (name: string): string =>
  `"${name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}"`

/** The boundary must be unguessable, so that it does not occur in what customers send. */
const multipart = (
  boundary: string,
  fields: Readonly<Record<string, string>>,
  files: ReadonlyArray<FilePart>
): { readonly contentType: string; readonly body: Chunks } => {
  const head = (name: string) => `--${boundary}\r\ncontent-disposition: form-data; name=${quote(name)}`
  const parts: Array<Uint8Array> = Object.entries(fields).map(([name, value]) =>
    Buffer.from(`${head(name)}\r\n\r\n${value}\r\n`)
  )
  for (const { bytes, filename, name, type } of files) {
    const about = `${head(name)}; filename=${quote(filename)}\r\ncontent-type: ${type}\r\n\r\n`
    parts.push(Buffer.from(about), bytes, Buffer.from("\r\n"))
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: chunksOf(parts) }
}

const fileParts = (references: ReadonlyArray<Picture>, name: string): ReadonlyArray<FilePart> =>
  references.map(({ bytes, type }, index) => {
    return { name, filename: `image-${index + 1}.${extensionOf[type]}`, type, bytes }
  })

const encodeReferences = (references: ReadonlyArray<Picture>) => {
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
  if (options.edits === "json")
    return { path, body: jsonChunks({ ...fields, ...encodeReferences(request.references) }, mark) }
  const files = fileParts(request.references, options.image_field ?? "image[]")
  return { path, ...multipart(mark, texts(fields), files) }
}

/** Undefined where the route cannot edit; `mark` must be unguessable. */
export const encodeContent = (
  route: ImageRoute,
  request: ImageRequest,
  options: Options,
  mark: string
): Content | undefined => {
  if (request.references.length === 0) return generation(route, request, options)
  return route.editModel === undefined ? undefined : edit(route.editModel, request, options, mark)
}
