import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { maxReferences, type Picture } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import { pixelsOf, quotient } from "../../domain/Shape.ts"
import type { ImageAdapter } from "../../services/routing/Provider.ts"
import { type Box, drawn, fitted, picture, type Scene, type Studio, type Tools } from "./Drawing.ts"
import { faultsFor, inject, withoutSwitches } from "./Faults.ts"

const scales: Readonly<Record<Resolution, number>> = { "1K": 1, "2K": 2, "4K": 4 }

const side = 1_024
const margin = 72
const gap = 24
const step = 16

/** As many pixels as a square of the resolution has, where the shape has no size of its own. */
const pixelsFor = ({ resolution, shape }: ImageRequest) => {
  const total = side * scales[resolution]
  if (shape === undefined) return { width: total, height: total }
  if (shape.size !== undefined) return pixelsOf(shape.size)
  const root = Math.sqrt(quotient(shape.aspectRatio))
  const round = (length: number) => Math.round(length / step) * step
  return { width: round(total * root), height: round(total / root) }
}

interface Canvas {
  readonly width: number
  readonly height: number
  /** Relative to a picture whose shorter side is 1024. */
  readonly scale: number
}

const canvasFor = (request: ImageRequest): Canvas => {
  const { height, width } = pixelsFor(request)
  return { width, height, scale: Math.min(width, height) / side }
}

const sceneOf = (route: ImageRoute, request: ImageRequest, { height, scale, width }: Canvas): Scene => {
  const isEdit = request.references.length > 0
  const model = isEdit ? (route.editModel ?? route.model) : route.model
  const inner = { width: width / scale - 2 * margin, height: height / scale - 2 * margin }
  return {
    width,
    height,
    scale,
    prompt: withoutSwitches(request.prompt),
    promptBox: { x: margin, y: margin, width: isEdit ? 480 : inner.width, height: inner.height - 80 },
    sizes: [88, 72, 60, 48, 40, 32, 26, 22],
    note: `${model} · ${isEdit ? "edit · " : ""}${request.resolution} · ${width} × ${height} · sandbox`,
    noteBox: { x: margin, y: margin + inner.height - 32, width: inner.width, height: 32 }
  }
}

const places = (count: number, canvas: Canvas): ReadonlyArray<Box> => {
  const columns = count > 3 ? 2 : 1
  const rows = Math.ceil(count / columns)
  const [left, top] = [592, margin]
  const width = (canvas.width / canvas.scale - margin - left - gap * (columns - 1)) / columns
  const height = (canvas.height / canvas.scale - 2 * margin - 80 - gap * (rows - 1)) / rows
  return Array.from({ length: count }, (_, index) => ({
    x: left + (index % columns) * (width + gap),
    y: top + Math.floor(index / columns) * (height + gap),
    width,
    height
  }))
}

/** One at a time: a reference can be large while it is decoded. */
const placed = (tools: Tools, references: ReadonlyArray<Picture>, canvas: Canvas) => {
  const shown = references.slice(0, maxReferences)
  const boxes = places(shown.length, canvas)
  const { scale } = canvas
  return Effect.forEach(shown, ({ bytes }, index) => {
    const { height = 0, width = 0, x = 0, y = 0 } = boxes[index] ?? {}
    const place = { width: width * scale, height: height * scale }
    return Effect.map(fitted(tools, bytes, place, "png"), (reference) => ({
      input: reference.bytes,
      left: Math.round(x * scale + (place.width - reference.width) / 2),
      top: Math.round(y * scale)
    }))
  })
}

/** The same model and request give the same bytes on any machine. */
export const make = ({ draw }: Studio): ImageAdapter => ({
  generate: Effect.fn("Sandbox.generate")(function* (route: ImageRoute, request: ImageRequest) {
    yield* inject(faultsFor(route, [request.prompt]))
    const canvas = canvasFor(request)
    const scene = sceneOf(route, request, canvas)
    const bytes = yield* draw((tools) =>
      Effect.flatMap(placed(tools, request.references, canvas), (references) =>
        drawn(async () => (await picture(tools, scene, references)).png().toBuffer())
      )
    )
    return { bytes, revisedPrompt: undefined }
  })
})
