import { Array, Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { maxReferences } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import { pixelsOf, quotient } from "../../domain/Shape.ts"
import type { ImageAdapter } from "../../services/routing/Provider.ts"
import { type Box, drawPng, type Photo, type Scene } from "./Drawing.ts"
import { faultsFor, inject, withoutSwitches } from "./Faults.ts"
import { decodeReference } from "./References.ts"

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

const enlarge = ({ height, width, x, y }: Box, scale: number): Box => ({
  x: Math.round(x * scale),
  y: Math.round(y * scale),
  width: Math.floor(width * scale),
  height: Math.floor(height * scale)
})

const heights = [88, 72, 60, 48, 40, 32, 26, 22]

/** The smaller side has 1,024 units; a reference is right of the prompt. */
const layOut = (route: ImageRoute, request: ImageRequest) => {
  const { height, width } = pixelsFor(request)
  const scale = Math.min(width, height) / side
  const count = Math.min(request.references.length, maxReferences)
  const model = count > 0 ? (route.editModel ?? route.model) : route.model
  const inner = { width: width / scale - 2 * margin, height: height / scale - 2 * margin }
  const prompt = { x: margin, y: margin, width: count > 0 ? 480 : inner.width, height: inner.height - 80 }
  const scene: Scene = {
    width,
    height,
    prompt: withoutSwitches(request.prompt),
    promptBox: enlarge(prompt, scale),
    heights: heights.map((units) => Math.max(2, Math.floor(units * scale))),
    note: `${model} · ${count > 0 ? "edit · " : ""}${request.resolution} · ${width} × ${height} · sandbox`,
    noteBox: enlarge({ x: margin, y: margin + inner.height - 32, width: inner.width, height: 32 }, scale),
    photos: []
  }
  const columns = count > 3 ? 2 : 1
  const rows = Math.ceil(count / columns)
  const left = margin + prompt.width + 40
  const place = {
    width: (margin + inner.width - left - gap * (columns - 1)) / columns,
    height: (prompt.height - gap * (rows - 1)) / rows
  }
  const boxes = request.references.slice(0, count).map((_, index) => {
    const x = left + (index % columns) * (place.width + gap)
    const y = margin + Math.floor(index / columns) * (place.height + gap)
    return enlarge({ ...place, x, y }, scale)
  })
  return { scene, boxes }
}

/** The same model and request give the same picture. */
export const make = (): ImageAdapter => ({
  generate: Effect.fn("Sandbox.generate")(function* (route: ImageRoute, request: ImageRequest) {
    yield* inject(faultsFor(route, [request.prompt]))
    const { boxes, scene } = layOut(route, request)
    const photos = yield* Effect.forEach(Array.zip(request.references, boxes), ([reference, box]) =>
      Effect.map(decodeReference(reference.bytes, box, "pixels"), ({ bytes, height, width }): Photo => {
        const x = box.x + Math.floor((box.width - width) / 2)
        return { x, y: box.y, width, height, pixels: bytes }
      })
    )
    return { bytes: yield* drawPng({ ...scene, photos }), revisedPrompt: undefined }
  })
})
