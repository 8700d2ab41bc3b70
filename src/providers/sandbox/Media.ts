import { createHash } from "node:crypto"
import { brotliDecompressSync } from "node:zlib"
import { Clock, Effect, Schema, Stream } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { extensionOf } from "../../domain/Media.ts"
import type { ImageRoute, Resolution, VideoRoute } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Plural.ts"
import { pixelsOf, quotient } from "../../domain/Shape.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { pictureOf } from "../../services/media/Pictures.ts"
import {
  type ImageAdapter,
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle,
  type VideoProgress
} from "../../services/routing/Provider.ts"
import { type Drawing, draw, encodePng, isWhite } from "./Drawing.ts"
import { failedRender, faultsFor, inject, refused, withoutSwitches } from "./Faults.ts"

const undecodable = new ProviderFailure({
  class: "request",
  status: 400,
  param: "image",
  detail: "sandbox: a reference is no whole picture"
})

const digestedBytes = 65_536

/** Type, size and a digest of a reference, whose pixels nobody decodes. Fails as the request's fault if it is no picture. */
const describe = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const picture = yield* Effect.flatten(pictureOf(bytes)).pipe(Effect.orElseFail(() => undecodable))
  const { height, type, width } = picture
  const digest = createHash("sha256").update(bytes.subarray(0, digestedBytes)).digest("hex").slice(0, 6)
  return `${extensionOf[type]} ${width} x ${height} #${digest}`
})

const scales: Readonly<Record<Resolution, number>> = { "1K": 1, "2K": 2, "4K": 4 }

const side = 1_024
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

/** The same model and request give the same picture. */
export const image: ImageAdapter = {
  generate: Effect.fn("Sandbox.generate")(function* (route: ImageRoute, request: ImageRequest) {
    yield* inject(faultsFor(route, [request.prompt]))
    const pixels = pixelsFor(request)
    const references = yield* Effect.forEach(request.references, ({ bytes }) => describe(bytes))
    const { length } = references
    const model = length > 0 ? (route.editModel ?? route.model) : route.model
    const edit = `edit of ${pluralize(length, "reference")}: ${references.join(", ")}`
    const facts = [model, request.resolution, `${pixels.width} x ${pixels.height}`, "sandbox"]
    const note = (length > 0 ? [edit, ...facts] : facts).join(" | ")
    return { bytes: yield* encodePng(draw(pixels, withoutSwitches(request.prompt), note)), revisedPrompt: undefined }
  })
}

/** In ms after the submit. */
const startsAfter = 1_000
const failsAfter = 2_000
const doneAfter = 3_000

/** The handle is all the state, so that any instance can go on with it. */
const Handle = Schema.parseJson(
  Schema.Struct({
    model: Schema.String,
    prompt: Schema.String,
    seconds: Schema.Int.pipe(Schema.between(1, 3_600)),
    /** The description of the reference image. */
    reference: Schema.NullOr(Schema.String),
    fate: Schema.Literal("done", "failed", "refused"),
    /** Unix ms. */
    submittedAt: Schema.Number
  })
)
type Handle = typeof Handle.Type

const maxPrompt = 2_000
const encode = Schema.encode(Handle)
const decode = Schema.decode(Handle)

const unknown = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: no such render" })

const read = (handle: VideoHandle): Effect.Effect<Handle, ProviderFailure> =>
  Effect.mapError(decode(handle), () => unknown)

const keepPrompt = (prompt: string): string =>
  withoutSwitches(prompt)
    .slice(0, maxPrompt)
    .replaceAll(/[\0\p{Cs}]/gu, "\ufffd")

const failures = { failed: failedRender, refused } as const

const progressOf = ({ fate, submittedAt }: Handle): Effect.Effect<VideoProgress> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const elapsed = now - submittedAt
    if (elapsed < startsAfter) return { state: "queued" }
    if (fate !== "done" && elapsed >= failsAfter) return { state: "failed", failure: failures[fate] }
    return elapsed < doneAfter
      ? { state: "in_progress", percent: Math.floor((100 * elapsed) / doneAfter) }
      : { state: "done" }
  })

const clip = { width: 640, height: 360 }

const frames = 40
const columns = clip.width / 16
const rows = Math.ceil(clip.height / 16)
/** Bytes per macroblock: 256 luma, 64 each of both chromas, a header of two. */
const stride = 386

/** One grey second of H.264, encoded in advance: an I_PCM key frame to paint over, then P_Skip. */
const sample = [
  "WwRwBeCqwDYWjTmECO6Kmxhad+sa0cnDXxI8+dO9u98NqLGGm7JKICQ7vkEjJNsI4lFIgjE0QIEBUqMu3Sf5BLRha0AZv1a+VXoMeSwgHSkgccp9",
  "EUYYYYTtRBGe8A3IrP2/wv/9/z8V837WzZgWD0UsURyryyrUUyrYBmq9pxTxjgVYtpqOBVhQ7e7cWq2VWsEwSz4MAjVZdue1F4FCY7yCKanZJErn",
  "E8woSpIaWEW15pCW4EoBYpm0bf4QdE6B3sqcOGBZOr8RM1yepW9FB010QM9rbkhVw9GxsZ7Tu3wJf6y5z4n01QRHpLeo8r+tCGvlF5lYAqk6mjgs",
  "3Ra310s8F3KZ/Xh18ON6QO5FSX39XJQF79c8bcr40FKOmZ7mjIUE4uX+HamTmu0DvcMTqPIlU49/GIylvwsgyRKfx8y3WEpGLxdlWfjq9KhK2SIF",
  "k0apXWajxrCX1LewubnFdwryNE6bJf/lMGfyn4iTErmJuO7zF+knD/C7EyJ4oYIV7MKmI3C2ZypVg2AExclvXwBCMILi5FfPuIHWCA=="
].join("")

/** BT.601 in limited range: no sample is ever zero, which would need escapes. */
const toYcbcr = ([r = 0, g = 0, b = 0]: Iterable<number>) => ({
  luma: 16.5 + (65.481 * r + 128.553 * g + 24.966 * b) / 255,
  blue: 128.5 + (-37.797 * r - 74.203 * g + 112 * b) / 255,
  red: 128.5 + (112 * r - 93.786 * g - 18.214 * b) / 255
})

const paint = (frame: Buffer, drawing: Drawing): void => {
  const [dark, white] = [toYcbcr(drawing.colour), toYcbcr([255, 255, 255])]
  for (let y = 0; y < rows * 16; y++) {
    for (let x = 0; x < clip.width; x++) {
      const { blue, luma, red } = isWhite(drawing, x, Math.min(y, clip.height - 1)) ? white : dark
      const block = stride * ((y >> 4) * columns + (x >> 4))
      frame[block + (y % 16) * 16 + (x % 16)] = luma
      if (x % 2 === 1 || y % 2 === 1) continue
      const difference = block + 256 + (y % 16) * 4 + (x % 16) / 2
      frame[difference] = blue
      frame[difference + 64] = red
    }
  }
}

/** A still of the prompt. */
const render = ({ model, prompt, reference, seconds }: Handle): Buffer => {
  const from = reference === null ? [] : [`from 1 reference: ${reference}`]
  const file = brotliDecompressSync(Buffer.from(sample, "base64"))
  const after = (box: string): number => file.indexOf(box, 0, "latin1") + 4
  file.writeUInt32BE(seconds, after("mvhd") + 16)
  file.writeUInt32BE(seconds, after("tkhd") + 20)
  file.writeUInt32BE(seconds * frames, after("mdhd") + 16)
  file.writeUInt32BE(seconds, after("stts") + 12)
  paint(file.subarray(after("mdat") + 9), draw(clip, prompt, [...from, model, `${seconds} s`, "sandbox"].join(" | ")))
  return file
}

/** The same render gives the same bytes. */
export const video: VideoAdapter = {
  submit: Effect.fn("Sandbox.submit")(function* (route: VideoRoute, request: VideoRequest) {
    const faults = faultsFor(route, [request.prompt])
    const { moderation, ...rest } = faults
    yield* inject(moderation === "render" ? rest : faults)
    const { reference } = request
    const handle: Handle = {
      model: reference === undefined ? route.model : (route.imageModel ?? route.model),
      prompt: keepPrompt(request.prompt),
      seconds: request.seconds,
      reference: reference === undefined ? null : yield* describe(reference.bytes),
      fate: moderation === "render" ? "refused" : faults.fail === true ? "failed" : "done",
      submittedAt: yield* Clock.currentTimeMillis
    }
    return yield* Effect.orDie(encode(handle))
  }),

  poll: Effect.fn("Sandbox.poll")(function* (_route: VideoRoute, handle: VideoHandle) {
    return yield* Effect.flatMap(read(handle), progressOf)
  }),

  download: (_route, handle) => Stream.fromEffect(Effect.withSpan(Effect.map(read(handle), render), "Sandbox.download"))
}
