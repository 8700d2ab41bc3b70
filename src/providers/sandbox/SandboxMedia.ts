import { createHash } from "node:crypto"
import { brotliDecompressSync } from "node:zlib"
import { Clock, Effect, Schema, Stream } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { extensionOf } from "../../domain/Media.ts"
import type { ImageRoute, Resolution, VideoRoute } from "../../domain/Model.ts"
import { pixelsOf, ratioOf } from "../../domain/Shape.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { pluralize } from "../../domain/Wording.ts"
import { pictureOf } from "../../services/media/Pictures.ts"
import {
  type ImageAdapter,
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle,
  type VideoProgress
} from "../../services/routing/Provider.ts"
import { type Drawing, draw, encodePng, isWhite } from "./Drawing.ts"
import { inject, jobFailure, moderationFailure, readFaultsNow, removeSwitches } from "./Faults.ts"

const invalidImage = new ProviderFailure({
  class: "request",
  status: 400,
  param: "image",
  detail: "sandbox: a reference image is incomplete or not an image"
})

const maxDigestBytes = 65_536

/** Describes a reference image by type, size and digest, without decoding pixels. Fails with class `request` for other data. */
const describeReference = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const picture = yield* Effect.flatten(pictureOf(bytes)).pipe(Effect.orElseFail(() => invalidImage))
  const { height, type, width } = picture
  const digest = createHash("sha256").update(bytes.subarray(0, maxDigestBytes)).digest("hex").slice(0, 6)
  return `${extensionOf[type]} ${width} x ${height} #${digest}`
})

const scales: Readonly<Record<Resolution, number>> = { "1K": 1, "2K": 2, "4K": 4 }

const baseSide = 1_024
const step = 16

/** Without an explicit size, an image has as many pixels as a square of its resolution. */
const pixelsFor = ({ resolution, shape }: ImageRequest) => {
  const total = baseSide * scales[resolution]
  if (shape === undefined) return { width: total, height: total }
  if (shape.size !== undefined) return pixelsOf(shape.size)
  const root = Math.sqrt(ratioOf(shape.aspectRatio))
  const round = (length: number) => Math.round(length / step) * step
  return { width: round(total * root), height: round(total / root) }
}

/** The same model and request give the same image. */
export const image: ImageAdapter = {
  generate: Effect.fn("Sandbox.generate")(function* (route: ImageRoute, request: ImageRequest) {
    yield* inject(readFaultsNow(route, [request.prompt]))
    const pixels = pixelsFor(request)
    const references = yield* Effect.forEach(request.references, ({ bytes }) => describeReference(bytes))
    const { length } = references
    const model = length > 0 ? (route.editModel ?? route.model) : route.model
    const edit = `edit of ${pluralize(length, "reference")}: ${references.join(", ")}`
    const noteParts = [model, request.resolution, `${pixels.width} x ${pixels.height}`, "sandbox"]
    const note = (length > 0 ? [edit, ...noteParts] : noteParts).join(" | ")
    return { bytes: yield* encodePng(draw(pixels, removeSwitches(request.prompt), note)), revisedPrompt: undefined }
  })
}

/** In milliseconds after submission. */
const startMillis = 1_000
const failureMillis = 2_000
const completionMillis = 3_000

/** The handle contains the complete state, so any instance can continue with it. */
const Handle = Schema.parseJson(
  Schema.Struct({
    model: Schema.String,
    prompt: Schema.String,
    seconds: Schema.Int.pipe(Schema.between(1, 3_600)),
    /** The description of the reference image. */
    reference: Schema.NullOr(Schema.String),
    fate: Schema.Literal("done", "failed", "refused"),
    /** Unix time in milliseconds. */
    submittedAt: Schema.Number
  })
)
type Handle = typeof Handle.Type

const maxPrompt = 2_000
const encodeHandle = Schema.encode(Handle)
const decodeHandle = Schema.decode(Handle)

const unknownJob = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: unknown job" })

const readHandle = (handle: VideoHandle): Effect.Effect<Handle, ProviderFailure> =>
  Effect.mapError(decodeHandle(handle), () => unknownJob)

const storePrompt = (prompt: string): string =>
  removeSwitches(prompt)
    .slice(0, maxPrompt)
    .replaceAll(/[\0\p{Cs}]/gu, "\ufffd")

const failures = { failed: jobFailure, refused: moderationFailure } as const

const progressOf = ({ fate, submittedAt }: Handle): Effect.Effect<VideoProgress> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const elapsed = now - submittedAt
    if (elapsed < startMillis) return { state: "queued" }
    if (fate !== "done" && elapsed >= failureMillis) return { state: "failed", failure: failures[fate] }
    return elapsed < completionMillis
      ? { state: "in_progress", percent: Math.floor((100 * elapsed) / completionMillis) }
      : { state: "done" }
  })

const frameSize = { width: 640, height: 360 }

const frames = 40
const columns = frameSize.width / 16
const rows = Math.ceil(frameSize.height / 16)
/** Bytes per macroblock: 256 of luma, 64 of each chroma plane, and a header of 2. */
const stride = 386

/** One gray second of H.264, encoded in advance: an I_PCM key frame to overwrite, then P_Skip frames. */
const sampleVideo = [
  "WwRwBeCqwDYWjTmECO6Kmxhad+sa0cnDXxI8+dO9u98NqLGGm7JKICQ7vkEjJNsI4lFIgjE0QIEBUqMu3Sf5BLRha0AZv1a+VXoMeSwgHSkgccp9",
  "EUYYYYTtRBGe8A3IrP2/wv/9/z8V837WzZgWD0UsURyryyrUUyrYBmq9pxTxjgVYtpqOBVhQ7e7cWq2VWsEwSz4MAjVZdue1F4FCY7yCKanZJErn",
  "E8woSpIaWEW15pCW4EoBYpm0bf4QdE6B3sqcOGBZOr8RM1yepW9FB010QM9rbkhVw9GxsZ7Tu3wJf6y5z4n01QRHpLeo8r+tCGvlF5lYAqk6mjgs",
  "3Ra310s8F3KZ/Xh18ON6QO5FSX39XJQF79c8bcr40FKOmZ7mjIUE4uX+HamTmu0DvcMTqPIlU49/GIylvwsgyRKfx8y3WEpGLxdlWfjq9KhK2SIF",
  "k0apXWajxrCX1LewubnFdwryNE6bJf/lMGfyn4iTErmJuO7zF+knD/C7EyJ4oYIV7MKmI3C2ZypVg2AExclvXwBCMILi5FfPuIHWCA=="
].join("")

/** BT.601 in limited range. No sample is zero, because zeros would need escapes. */
const toYcbcr = ([r = 0, g = 0, b = 0]: Iterable<number>) => ({
  luma: 16.5 + (65.481 * r + 128.553 * g + 24.966 * b) / 255,
  blue: 128.5 + (-37.797 * r - 74.203 * g + 112 * b) / 255,
  red: 128.5 + (112 * r - 93.786 * g - 18.214 * b) / 255
})

const paintFrame = (frame: Buffer, drawing: Drawing): void => {
  const [dark, white] = [toYcbcr(drawing.colour), toYcbcr([255, 255, 255])]
  for (let y = 0; y < rows * 16; y++) {
    for (let x = 0; x < frameSize.width; x++) {
      const { blue, luma, red } = isWhite(drawing, x, Math.min(y, frameSize.height - 1)) ? white : dark
      const block = stride * ((y >> 4) * columns + (x >> 4))
      frame[block + (y % 16) * 16 + (x % 16)] = luma
      if (x % 2 === 1 || y % 2 === 1) continue
      const chroma = block + 256 + (y % 16) * 4 + (x % 16) / 2
      frame[chroma] = blue
      frame[chroma + 64] = red
    }
  }
}

/** Returns a still video of the prompt. */
const renderVideo = ({ model, prompt, reference, seconds }: Handle): Buffer => {
  const source = reference === null ? [] : [`from 1 reference: ${reference}`]
  const file = brotliDecompressSync(Buffer.from(sampleVideo, "base64"))
  const offsetAfter = (box: string): number => file.indexOf(box, 0, "latin1") + 4
  file.writeUInt32BE(seconds, offsetAfter("mvhd") + 16)
  file.writeUInt32BE(seconds, offsetAfter("tkhd") + 20)
  file.writeUInt32BE(seconds * frames, offsetAfter("mdhd") + 16)
  file.writeUInt32BE(seconds, offsetAfter("stts") + 12)
  paintFrame(
    file.subarray(offsetAfter("mdat") + 9),
    draw(frameSize, prompt, [...source, model, `${seconds} s`, "sandbox"].join(" | "))
  )
  return file
}

/** The same job gives the same bytes. */
export const video: VideoAdapter = {
  submit: Effect.fn("Sandbox.submit")(function* (route: VideoRoute, request: VideoRequest) {
    const faults = readFaultsNow(route, [request.prompt])
    const { moderation, ...rest } = faults
    yield* inject(moderation === "render" ? rest : faults)
    const { reference } = request
    const handle: Handle = {
      model: reference === undefined ? route.model : (route.imageModel ?? route.model),
      prompt: storePrompt(request.prompt),
      seconds: request.seconds,
      reference: reference === undefined ? null : yield* describeReference(reference.bytes),
      fate: moderation === "render" ? "refused" : faults.fail === true ? "failed" : "done",
      submittedAt: yield* Clock.currentTimeMillis
    }
    return yield* Effect.orDie(encodeHandle(handle))
  }),

  poll: Effect.fn("Sandbox.poll")(function* (_route: VideoRoute, handle: VideoHandle) {
    return yield* Effect.flatMap(readHandle(handle), progressOf)
  }),

  download: (_route, handle) =>
    Stream.fromEffect(Effect.withSpan(Effect.map(readHandle(handle), renderVideo), "Sandbox.download"))
}
