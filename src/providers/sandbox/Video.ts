import { Clock, Effect, Schema, Stream } from "effect"
import type { VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/Video.ts"
import {
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle,
  type VideoProgress
} from "../../services/routing/Provider.ts"
import { encodeClip, height, width } from "./Clip.ts"
import { type Box, compose, fitReference, maxRead, type Scene, type Studio, type Tools, tryDrawing } from "./Drawing.ts"
import { failedRender, faultsFor, inject, refused, withoutSwitches } from "./Faults.ts"

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
    .slice(0, 2 * maxRead)
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

const render = (tools: Tools, handle: Handle) =>
  tryDrawing(async () => {
    const { reference } = handle
    const place = { left: referenceBox.x, top: referenceBox.y }
    const over = reference === null ? [] : [{ input: Buffer.from(reference), ...place }]
    const painted = await compose(tools, sceneOf(handle), over)
    return encodeClip(await painted.raw().toBuffer(), handle.seconds)
  })

/** The same render gives the same bytes. */
export const make = ({ draw }: Studio): VideoAdapter => ({
  submit: Effect.fn("Sandbox.submit")(function* (route: VideoRoute, request: VideoRequest) {
    const faults = faultsFor(route, [request.prompt])
    const { moderation, ...rest } = faults
    yield* inject(moderation === "render" ? rest : faults)
    const { reference } = request
    const small =
      reference === undefined
        ? null
        : yield* draw((tools) => fitReference(tools, reference.bytes, referenceBox, "jpeg"))
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
        return Stream.make(yield* draw((tools) => render(tools, handle)))
      }).pipe(Effect.withSpan("Sandbox.download"))
    )
})
