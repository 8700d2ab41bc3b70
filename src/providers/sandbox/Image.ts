import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { mostReferences, type Picture } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import type { ImageAdapter } from "../../services/routing/Provider.ts"
import type { Box } from "./drawing/Lettering.ts"
import { fitted, markup, type Scene } from "./drawing/Scene.ts"
import { drawn, type Studio, type Tools } from "./drawing/Studio.ts"
import { faultsFor, inject, withoutSwitches } from "./Faults.ts"

/** Width and height, in pixels. */
const sides: Readonly<Record<Resolution, number>> = { "1K": 1_024, "2K": 2_048, "4K": 4_096 }

/** Everything is laid out on a square of this side, and drawn at the resolution asked for. */
const unit = 1_024
const margin = 72
const gap = 24

const scaled = ({ height, width, x, y }: Box, by: number): Box => ({
  x: x * by,
  y: y * by,
  width: width * by,
  height: height * by
})

/** The prompt has the whole width, or the left of it beside references. */
const sceneOf = (route: ImageRoute, { prompt, references, resolution }: ImageRequest): Scene => {
  const by = sides[resolution] / unit
  const edit = references.length > 0
  const model = edit ? (route.editModel ?? route.model) : route.model
  const side = sides[resolution]
  return {
    width: side,
    height: side,
    prompt: withoutSwitches(prompt),
    promptBox: scaled({ x: margin, y: margin, width: edit ? 480 : unit - 2 * margin, height: 800 }, by),
    sizes: [88, 72, 60, 48, 40, 32, 26, 22].map((size) => size * by),
    note: `${model} · ${edit ? "edit · " : ""}${resolution} · ${side} × ${side} · sandbox`,
    noteBox: scaled({ x: margin, y: unit - margin - 32, width: unit - 2 * margin, height: 32 }, by)
  }
}

/** Places for so many references, right of the prompt: one column, or two for more than three. */
const places = (count: number): ReadonlyArray<Box> => {
  const columns = count > 3 ? 2 : 1
  const rows = Math.ceil(count / columns)
  const area = { x: 592, y: margin, width: unit - margin - 592, height: 800 }
  const width = (area.width - gap * (columns - 1)) / columns
  const height = (area.height - gap * (rows - 1)) / rows
  return Array.from({ length: count }, (_, index) => ({
    x: area.x + (index % columns) * (width + gap),
    y: area.y + Math.floor(index / columns) * (height + gap),
    width,
    height
  }))
}

/** One after the other: a reference can be large while it is decoded. */
const placed = Effect.fnUntraced(function* (tools: Tools, references: ReadonlyArray<Picture>, by: number) {
  const shown = references.slice(0, mostReferences)
  return yield* Effect.forEach(places(shown.length), (place, index) => {
    const box = scaled(place, by)
    const bytes = shown[index]?.bytes ?? new Uint8Array()
    return Effect.map(fitted(tools, bytes, box, "png"), (picture) => ({
      input: picture.bytes,
      left: Math.round(box.x + (box.width - picture.width) / 2),
      top: Math.round(box.y)
    }))
  })
})

/** Pictures that show their prompt. The same model and request give the same bytes, whatever fonts a machine has. */
export const make = ({ draw }: Studio): ImageAdapter => ({
  generate: Effect.fn("Sandbox.generate")(function* (route: ImageRoute, request: ImageRequest) {
    yield* inject(faultsFor(route, [request.prompt]))
    const scene = sceneOf(route, request)
    const bytes = yield* draw((tools) =>
      Effect.flatMap(placed(tools, request.references, scene.width / unit), (references) =>
        drawn(() => tools.sharp(markup(tools, scene)).composite(references).removeAlpha().png().toBuffer())
      )
    )
    return { bytes, revisedPrompt: undefined }
  })
})
