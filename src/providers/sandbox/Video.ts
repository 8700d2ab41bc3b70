import { Clock, Effect, Schema, Stream } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/Video.ts"
import {
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle,
  type VideoProgress
} from "../../services/routing/Provider.ts"
import { clip, height, macroblock, type Patch, width } from "./Clip.ts"
import {
  type Box,
  drawn,
  fitted,
  lettering,
  mostRead,
  picture,
  type Scene,
  type Studio,
  type Tools
} from "./Drawing.ts"
import { failedRender, faultsFor, inject, refused, withoutSwitches } from "./Faults.ts"

/** From the submit on, in ms: when a render starts, when one that fails does so, and when it is done. */
const startsAfter = 1_000
const failsAfter = 2_000
const doneAfter = 3_000

/** All there is of a render: the sandbox keeps nothing, so that any instance can go on with it. */
const Handle = Schema.parseJson(
  Schema.Struct({
    model: Schema.String,
    /** No more of it than is shown. */
    prompt: Schema.String,
    seconds: Schema.Int.pipe(Schema.between(1, 3_600)),
    /** A small picture. */
    reference: Schema.NullOr(Schema.Uint8ArrayFromBase64),
    fate: Schema.Literal("done", "failed", "refused"),
    /** Unix ms. */
    submittedAt: Schema.Number
  })
)
type Handle = typeof Handle.Type

const mostEncoded = 1_000_000
const encode = Schema.encode(Handle)
const decode = Schema.decode(Handle)

const unknown = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: no such render" })
const early = new ProviderFailure({ class: "retry", status: 404, detail: "sandbox: the render is not done" })

const read = (handle: VideoHandle): Effect.Effect<Handle, ProviderFailure> =>
  handle.length > mostEncoded ? unknown : Effect.mapError(decode(handle), () => unknown)

/** As much as is shown, and as any database takes it. */
const kept = (prompt: string): string =>
  withoutSwitches(prompt)
    .slice(0, 2 * mostRead)
    .replaceAll(/[\0\p{Cs}]/gu, "\ufffd")

const failures = { failed: failedRender, refused } as const

const progressOf = ({ fate, submittedAt }: Handle): Effect.Effect<VideoProgress> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const elapsed = now - submittedAt
    if (elapsed < startsAfter) return { state: "queued" }
    if (fate !== "done" && elapsed >= failsAfter) return { state: "failed", failure: failures[fate] }
    return { state: elapsed < doneAfter ? "in_progress" : "done" }
  })

/** Where a reference goes, right of the prompt. */
const referenceBox: Box = { x: 400, y: 28, width: 208, height: 192 }

const sceneOf = ({ model, prompt, reference, seconds }: Handle): Scene => ({
  width,
  height,
  scale: 1,
  prompt,
  promptBox: { x: 32, y: 28, width: reference === null ? 576 : 344, height: 192 },
  sizes: [48, 40, 32, 26, 22, 18],
  note: `${model} · ${seconds} s · sandbox`,
  noteBox: { x: 32, y: 288, width: 384, height: 24 }
})

const paint = (tools: Tools, handle: Handle) =>
  drawn(async () => {
    const { reference } = handle
    const place = { left: referenceBox.x, top: referenceBox.y }
    const over = reference === null ? [] : [{ input: Buffer.from(reference), ...place }]
    const { data } = await (await picture(tools, sceneOf(handle), over)).raw().toBuffer({ resolveWithObject: true })
    return { data, width, height }
  })

/** In macroblocks: the counter's first row, the column before which it ends, and the size of a digit. */
const counter = { row: 15, end: 38, columns: 3, rows: 5 }

/** The second that is shown, right of the note. */
const counterAt = (tools: Tools, second: number, seconds: number): Effect.Effect<Patch, ProviderFailure> =>
  drawn(async () => {
    const columns = counter.columns * String(seconds).length
    const text = String(second + 1).padStart(columns / counter.columns, "0")
    const size = { width: columns * macroblock, height: counter.rows * macroblock }
    const letters = await lettering(tools, { text, box: { x: 3, y: 16, ...size }, sizes: [64] })
    const panel = tools.sharp({ create: { ...size, channels: 3, background: "#10131a" } })
    return {
      data: await panel
        .composite([...letters])
        .removeAlpha()
        .raw()
        .toBuffer(),
      ...size,
      row: counter.row,
      column: counter.end - columns
    }
  })

/** Clips that show their prompt, their reference, and the seconds as they pass. The same render gives the same bytes. */
export const make = ({ draw }: Studio): VideoAdapter => ({
  submit: Effect.fn("Sandbox.submit")(function* (route: VideoRoute, request: VideoRequest) {
    const faults = faultsFor(route, [request.prompt])
    const { moderation, ...rest } = faults
    yield* inject(moderation === "render" ? rest : faults)
    const { reference } = request
    const small =
      reference === undefined ? null : yield* draw((tools) => fitted(tools, reference.bytes, referenceBox, "jpeg"))
    const handle: Handle = {
      model: reference === undefined ? route.model : (route.imageModel ?? route.model),
      prompt: kept(request.prompt),
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
        const { seconds } = handle
        const base = yield* draw((tools) => paint(tools, handle))
        return clip(base, (second) => draw((tools) => counterAt(tools, second, seconds)), seconds)
      }).pipe(Effect.withSpan("Sandbox.download"))
    )
})
