import { brotliDecompressSync } from "node:zlib"
import { Clock, Effect, Schema, Stream } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/Video.ts"
import {
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle,
  type VideoProgress
} from "../../services/routing/Provider.ts"
import { type Box, drawPixels, type Photo, type Scene } from "./Drawing.ts"
import { failedRender, faultsFor, inject, refused, withoutSwitches } from "./Faults.ts"
import { maxLetters } from "./Lettering.ts"
import { decodeReference } from "./References.ts"

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
    reference: Schema.NullOr(Schema.Uint8ArrayFromBase64),
    fate: Schema.Literal("done", "failed", "refused"),
    /** Unix ms. */
    submittedAt: Schema.Number
  })
)
type Handle = typeof Handle.Type

const maxEncoded = 1_000_000
const encode = Schema.encode(Handle)
const decode = Schema.decode(Handle)

const unknown = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: no such render" })
const early = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: the render is not done" })

const read = (handle: VideoHandle): Effect.Effect<Handle, ProviderFailure> =>
  handle.length > maxEncoded ? unknown : Effect.mapError(decode(handle), () => unknown)

const keepPrompt = (prompt: string): string =>
  withoutSwitches(prompt)
    .slice(0, 2 * maxLetters)
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

const width = 640
const height = 360

const frames = 40
const columns = width / 16
const rows = Math.ceil(height / 16)
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

/** BT.601 in limited range from RGB: no sample is ever zero, which would need escapes. */
const paint = (frame: Buffer, pixels: Uint8Array): void => {
  for (let y = 0; y < rows * 16; y++) {
    for (let x = 0; x < width; x++) {
      const from = 3 * (Math.min(y, height - 1) * width + x)
      const [r = 0, g = 0, b = 0] = [pixels[from], pixels[from + 1], pixels[from + 2]]
      const block = stride * ((y >> 4) * columns + (x >> 4))
      frame[block + (y % 16) * 16 + (x % 16)] = 16.5 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
      if (x % 2 === 1 || y % 2 === 1) continue
      const difference = block + 256 + (y % 16) * 4 + (x % 16) / 2
      frame[difference] = 128.5 + (-37.797 * r - 74.203 * g + 112 * b) / 255
      frame[difference + 64] = 128.5 + (112 * r - 93.786 * g - 18.214 * b) / 255
    }
  }
}

const encodeClip = (pixels: Uint8Array, seconds: number): Buffer => {
  const file = brotliDecompressSync(Buffer.from(sample, "base64"))
  const after = (box: string): number => file.indexOf(box, 0, "latin1") + 4
  file.writeUInt32BE(seconds, after("mvhd") + 16)
  file.writeUInt32BE(seconds, after("tkhd") + 20)
  file.writeUInt32BE(seconds * frames, after("mdhd") + 16)
  file.writeUInt32BE(seconds, after("stts") + 12)
  paint(file.subarray(after("mdat") + 9), pixels)
  return file
}

const referenceBox: Box = { x: 400, y: 28, width: 208, height: 192 }

const sceneOf = ({ model, prompt, reference, seconds }: Handle): Scene => ({
  width,
  height,
  prompt,
  promptBox: { x: 32, y: 28, width: reference === null ? 576 : 344, height: 192 },
  heights: [48, 40, 32, 26, 22, 18],
  note: `${model} · ${seconds} s · sandbox`,
  noteBox: { x: 32, y: 288, width: 384, height: 24 },
  photos: []
})

const render = Effect.fnUntraced(
  function* (handle: Handle) {
    const { reference } = handle
    const decoded = reference === null ? [] : [yield* decodeReference(reference, referenceBox, "pixels")]
    const photos = decoded.map(({ bytes, ...size }): Photo => ({ ...referenceBox, ...size, pixels: bytes }))
    return encodeClip(drawPixels({ ...sceneOf(handle), photos }), handle.seconds)
  },
  Effect.mapError((failure) => (failure.class === "request" ? unknown : failure))
)

/** The same render gives the same bytes. */
export const make = (): VideoAdapter => ({
  submit: Effect.fn("Sandbox.submit")(function* (route: VideoRoute, request: VideoRequest) {
    const faults = faultsFor(route, [request.prompt])
    const { moderation, ...rest } = faults
    yield* inject(moderation === "render" ? rest : faults)
    const { reference } = request
    const small = reference === undefined ? null : yield* decodeReference(reference.bytes, referenceBox, "jpeg")
    const handle: Handle = {
      model: reference === undefined ? route.model : (route.imageModel ?? route.model),
      prompt: keepPrompt(request.prompt),
      seconds: request.seconds,
      reference: small === null ? null : small.bytes,
      fate: moderation === "render" ? "refused" : faults.fail === true ? "failed" : "done",
      submittedAt: yield* Clock.currentTimeMillis
    }
    return yield* Effect.orDie(encode(handle))
  }),

  poll: Effect.fn("Sandbox.poll")(function* (_route: VideoRoute, handle: VideoHandle) {
    return yield* Effect.flatMap(read(handle), progressOf)
  }),

  download: (_route, text) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const handle = yield* read(text)
        const { state } = yield* progressOf(handle)
        if (state !== "done") return yield* early
        return Stream.make(yield* render(handle))
      }).pipe(Effect.withSpan("Sandbox.download"))
    )
})
