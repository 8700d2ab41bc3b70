import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { maxReferences, type Picture } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import { pixelsOf, quotient } from "../../domain/Shape.ts"
import type { ImageAdapter } from "../../services/routing/Provider.ts"
import { type Box, compose, fitReference, type Scene, type Studio, type Tools, tryDrawing } from "./Drawing.ts"
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

const sceneOf = (route: ImageRoute, request: ImageRequest): Scene => {
  const { height, width } = pixelsFor(request)
  const scale = Math.min(width, height) / side
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

const boxFor = (index: number, count: number, scene: Scene): Box => {
  const columns = count > 3 ? 2 : 1
  const rows = Math.ceil(count / columns)
  const [left, top] = [592, margin]
  const width = (scene.width / scene.scale - margin - left - gap * (columns - 1)) / columns
  const height = (scene.promptBox.height - gap * (rows - 1)) / rows
  const [column, row] = [index % columns, Math.floor(index / columns)]
  return { x: left + column * (width + gap), y: top + row * (height + gap), width, height }
}

/** One at a time: a reference can be large while it is decoded. */
const placeReferences = (tools: Tools, references: ReadonlyArray<Picture>, scene: Scene) => {
  const shown = references.slice(0, maxReferences)
  const { scale } = scene
  return Effect.forEach(shown, ({ bytes }, index) => {
    const { height, width, x, y } = boxFor(index, shown.length, scene)
    const place = { width: width * scale, height: height * scale }
    return Effect.map(fitReference(tools, bytes, place, "png"), (reference) => ({
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
    const scene = sceneOf(route, request)
    const bytes = yield* draw((tools) =>
      Effect.flatMap(placeReferences(tools, request.references, scene), (references) =>
        tryDrawing(async () => (await compose(tools, scene, references)).png().toBuffer())
      )
    )
    return { bytes, revisedPrompt: undefined }
  })
})
