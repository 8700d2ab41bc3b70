import { createHash } from "node:crypto"
import { createRequire } from "node:module"
import { Effect } from "effect"
import type { OverlayOptions, Sharp } from "sharp"
import { ProviderFailure } from "../../services/routing/Provider.ts"

export interface Tools {
  readonly sharp: typeof import("sharp").default
  readonly fontfile: string
}

export interface Studio {
  /** Work runs to its end, also when its caller is interrupted. */
  readonly draw: <A>(work: (tools: Tools) => Effect.Effect<A, ProviderFailure>) => Effect.Effect<A, ProviderFailure>
}

export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface Scene {
  readonly width: number
  readonly height: number
  /** Pixels in a unit of the boxes. */
  readonly scale: number
  readonly prompt: string
  readonly promptBox: Box
  readonly sizes: ReadonlyArray<number>
  readonly note: string
  readonly noteBox: Box
}

/** Half of the four threads for files, names and pictures. */
const maxAtOnce = 2
export const maxRead = 1_000
/** A picture that claims more is not decoded. */
const maxReferencePixels = 100_000_000
const longestDecode = { seconds: 60 }

const failureOf = (what: string) => (cause: unknown) =>
  new ProviderFailure({
    class: "retry",
    status: 500,
    detail: `sandbox: ${what}: ${cause instanceof Error ? cause.message : String(cause)}`.slice(0, 500)
  })

export const tryDrawing = <A>(work: () => Promise<A>): Effect.Effect<A, ProviderFailure> =>
  Effect.tryPromise({ try: work, catch: failureOf("a picture could not be drawn") })

// Loaded lazily: where sharp cannot load, all else works.
const load = Effect.tryPromise({
  try: async (): Promise<Tools> => {
    const { resolve } = createRequire(import.meta.url)
    // Without directories no system font makes a picture differ.
    process.env["FONTCONFIG_FILE"] = resolve("dejavu-fonts-ttf/fontconfig/57-dejavu-sans.conf")
    const { default: sharp } = await import("sharp")
    sharp.concurrency(1)
    sharp.cache(false)
    return { sharp, fontfile: resolve("dejavu-fonts-ttf/ttf/DejaVuSans.ttf") }
  },
  catch: failureOf("pictures need the packages sharp and dejavu-fonts-ttf, and they could not be loaded")
})

export const make: Effect.Effect<Studio> = Effect.gen(function* () {
  const turns = yield* Effect.makeSemaphore(maxAtOnce)
  let tools: Tools | undefined
  const loaded = Effect.suspend(() =>
    tools === undefined ? Effect.tap(load, (all) => (tools = all)) : Effect.succeed(tools)
  )
  return {
    draw: (work) => Effect.disconnect(turns.withPermits(1)(Effect.uninterruptible(Effect.flatMap(loaded, work))))
  }
})

const toDrawable = (text: string): ReadonlyArray<string> => {
  const visible = text
    .slice(0, 2 * maxRead)
    .replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
    .replaceAll(/(?!\n)[\p{Cc}\p{Zs}]+/gu, " ")
    .replaceAll(/[\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffc]/gu, "")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()
  const characters = Array.from(visible)
  return characters.length <= maxRead ? characters : [...characters.slice(0, maxRead), "…"]
}

interface Lettering {
  readonly text: string
  readonly box: Box
  readonly sizes: ReadonlyArray<number>
  readonly opacity?: number
}

/** Draws in the largest size that fits, and cuts the text at the smallest. */
const drawText = async (
  { fontfile, sharp }: Tools,
  { box, opacity = 1, sizes, text }: Lettering,
  scale = 1
): Promise<ReadonlyArray<OverlayOptions>> => {
  let characters = toDrawable(text)
  if (characters.length === 0) return []
  const renderText = (size: number, by: number): Sharp => {
    const plain = characters.join("").replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    const marked = `<span foreground="white" alpha="${Math.round(100 * opacity)}%">${plain}</span>`
    const width = Math.floor(box.width * by)
    return sharp({
      text: {
        text: marked,
        font: `DejaVu Sans ${size}`,
        fontfile,
        width,
        wrap: "word-char",
        dpi: Math.round(72 * by),
        rgba: true
      }
    })
  }
  const [largest = 1, ...smaller] = sizes
  let size = largest
  while (characters.length > 1) {
    // Fails where it is larger than the library can draw.
    const { height, width } = await renderText(size, 1)
      .metadata()
      .catch(() => ({ height: Infinity, width: Infinity }))
    const share = Math.min(box.height / height, box.width / width)
    if (share >= 1) break
    const next = smaller.shift()
    if (next === undefined) {
      const kept = characters.length * Math.min(0.9, Math.max(0.5, share))
      characters = [...characters.slice(0, Math.floor(kept) - 1), "…"]
    } else size = next
  }
  const room = { width: Math.floor(box.width * scale), height: Math.floor(box.height * scale) }
  const picture = renderText(size, scale).resize({ ...room, fit: "inside", withoutEnlargement: true })
  const input = await picture.png({ compressionLevel: 1 }).toBuffer()
  return [{ input, left: Math.round(box.x * scale), top: Math.round(box.y * scale) }]
}

const backdropOf = ({ height, note, prompt, width }: Scene): string => {
  const seed = createHash("sha256").update(prompt).update("\0").update(note).digest()
  const hue = seed.readUInt16BE(0) % 360
  const discs = [4, 8, 12].map((from) => {
    const [x, y, r] = [seed.readUInt8(from), seed.readUInt8(from + 1), seed.readUInt8(from + 2)]
    return `<circle cx="${(100 * x) / 255}%" cy="${(100 * y) / 255}%" r="${15 + r / 8.5}%"/>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`,
    `<defs><linearGradient id="sky" x1="0" y1="0" x2="1" y2="1">`,
    `<stop offset="0" stop-color="hsl(${hue},50%,22%)"/>`,
    `<stop offset="1" stop-color="hsl(${(hue + 30 + (seed.readUInt8(2) % 60)) % 360},55%,34%)"/>`,
    `</linearGradient></defs><rect width="100%" height="100%" fill="url(#sky)"/>`,
    `<g fill="#fff" fill-opacity="0.05">${discs.join("")}</g></svg>`
  ].join("")
}

export const compose = async (tools: Tools, scene: Scene, others: ReadonlyArray<OverlayOptions>): Promise<Sharp> => {
  const { note, noteBox, prompt, promptBox, scale, sizes } = scene
  const small = [noteBox.height * 0.75, noteBox.height * 0.5]
  const layers = [
    ...(await drawText(tools, { text: prompt, box: promptBox, sizes }, scale)),
    ...(await drawText(tools, { text: note, box: noteBox, sizes: small, opacity: 0.7 }, scale)),
    ...others
  ]
  return tools
    .sharp(Buffer.from(backdropOf(scene)))
    .composite(layers)
    .removeAlpha()
}

/** Upright sRGB; an undecodable reference is the request's fault. */
export const fitReference = (
  { sharp }: Tools,
  reference: Uint8Array,
  { height, width }: Pick<Box, "width" | "height">,
  format: "png" | "jpeg"
) =>
  tryDrawing(async () => {
    const upright = sharp(reference, { failOn: "error", limitInputPixels: maxReferencePixels })
      .timeout(longestDecode)
      .autoOrient()
      .resize({ width: Math.floor(width), height: Math.floor(height), fit: "inside" })
      .toColourspace("srgb")
    const encoded = format === "png" ? upright.png({ compressionLevel: 1 }) : upright.flatten().jpeg()
    const { data, info } = await encoded.toBuffer({ resolveWithObject: true })
    return { bytes: data, width: info.width }
  }).pipe(
    Effect.mapError(({ detail }) => new ProviderFailure({ class: "request", status: 400, param: "image", detail }))
  )
