import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { mostReferences, type Picture } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import type { ImageAdapter } from "../../services/routing/Provider.ts"
import { type Box, drawn, fitted, picture, type Scene, type Studio, type Tools } from "./Drawing.ts"
import { faultsFor, inject, withoutSwitches } from "./Faults.ts"

const scales: Readonly<Record<Resolution, number>> = { "1K": 1, "2K": 2, "4K": 4 }

const unit = 1_024
const margin = 72
const gap = 24

const sceneOf = (route: ImageRoute, { prompt, references, resolution }: ImageRequest): Scene => {
  const scale = scales[resolution]
  const side = unit * scale
  const isEdit = references.length > 0
  const model = isEdit ? (route.editModel ?? route.model) : route.model
  return {
    width: side,
    height: side,
    scale,
    prompt: withoutSwitches(prompt),
    promptBox: { x: margin, y: margin, width: isEdit ? 480 : unit - 2 * margin, height: 800 },
    sizes: [88, 72, 60, 48, 40, 32, 26, 22],
    note: `${model} · ${isEdit ? "edit · " : ""}${resolution} · ${side} × ${side} · sandbox`,
    noteBox: { x: margin, y: unit - margin - 32, width: unit - 2 * margin, height: 32 }
  }
}

const places = (count: number): ReadonlyArray<Box> => {
  const columns = count > 3 ? 2 : 1
  const rows = Math.ceil(count / columns)
  const [left, top] = [592, margin]
  const width = (unit - margin - left - gap * (columns - 1)) / columns
  const height = (800 - gap * (rows - 1)) / rows
  return Array.from({ length: count }, (_, index) => ({
    x: left + (index % columns) * (width + gap),
    y: top + Math.floor(index / columns) * (height + gap),
    width,
    height
  }))
}

/** One at a time: a reference can be large while it is decoded. */
const placed = (tools: Tools, references: ReadonlyArray<Picture>, scale: number) => {
  const shown = references.slice(0, mostReferences)
  const boxes = places(shown.length)
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
    const scene = sceneOf(route, request)
    const bytes = yield* draw((tools) =>
      Effect.flatMap(placed(tools, request.references, scene.scale), (references) =>
        drawn(async () => (await picture(tools, scene, references)).png().toBuffer())
      )
    )
    return { bytes, revisedPrompt: undefined }
  })
})
