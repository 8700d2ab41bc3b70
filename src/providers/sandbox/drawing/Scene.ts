import { createHash } from "node:crypto"
import { Effect } from "effect"
import { ProviderFailure } from "../../../services/routing/Provider.ts"
import { type Box, lettering } from "./Lettering.ts"
import { drawn, type Tools } from "./Studio.ts"

/** What one picture says, and where. Lengths are in pixels. */
export interface Scene {
  readonly width: number
  readonly height: number
  /** Decides the colours, with the note. */
  readonly prompt: string
  readonly promptBox: Box
  /** Sizes of the prompt's letters, descending. */
  readonly sizes: ReadonlyArray<number>
  /** In small print. */
  readonly note: string
  readonly noteBox: Box
}

/** Enough for what a camera takes; a picture that claims more is not decoded. */
const mostReferencePixels = 100_000_000
const longestDecode = { seconds: 60 }

/** Two colours that go together, and a few large discs in the light. */
const backdrop = ({ height, note, prompt, width }: Scene): string => {
  const seed = createHash("sha256").update(prompt).update("\0").update(note).digest()
  const byte = (index: number): number => seed[index] ?? 0
  const hue = seed.readUInt16BE(0) % 360
  const other = (hue + 30 + (byte(2) % 60)) % 360
  const discs = [4, 8, 12].map((from) => {
    const [x, y, r] = [(byte(from) / 255) * width, (byte(from + 1) / 255) * height, 0.15 + byte(from + 2) / 850]
    return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${(r * height).toFixed(1)}"/>`
  })
  return [
    `<defs><linearGradient id="sky" x1="0" y1="0" x2="1" y2="1">`,
    `<stop offset="0" stop-color="hsl(${hue},50%,22%)"/><stop offset="1" stop-color="hsl(${other},55%,34%)"/>`,
    `</linearGradient></defs><rect width="100%" height="100%" fill="url(#sky)"/>`,
    `<g fill="#fff" fill-opacity="0.05">${discs.join("")}</g>`
  ].join("")
}

/** As SVG. */
export const markup = ({ font }: Tools, scene: Scene): Buffer => {
  const { height, note, noteBox, prompt, promptBox, sizes, width } = scene
  const small = [noteBox.height * 0.75, noteBox.height * 0.5]
  return Buffer.from(
    [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`,
      backdrop(scene),
      lettering(font, prompt, promptBox, sizes, `fill="#fff"`),
      lettering(font, note, noteBox, small, `fill="#fff" fill-opacity="0.7"`),
      "</svg>"
    ].join("")
  )
}

/** A reference made to fit a place, upright, as sRGB; its bytes are to blame where it cannot be decoded. */
export const fitted = (
  { sharp }: Tools,
  reference: Uint8Array,
  place: Pick<Box, "width" | "height">,
  format: "png" | "jpeg"
) =>
  Effect.mapError(
    drawn(async () => {
      const picture = sharp(reference, { failOn: "error", limitInputPixels: mostReferencePixels })
        .timeout(longestDecode)
        .autoOrient()
        .resize({ width: Math.floor(place.width), height: Math.floor(place.height), fit: "inside" })
        .toColourspace("srgb")
      const encoded = format === "png" ? picture.png({ compressionLevel: 1 }) : picture.flatten().jpeg()
      const { data, info } = await encoded.toBuffer({ resolveWithObject: true })
      return { bytes: data, width: info.width, height: info.height }
    }),
    ({ detail }) => new ProviderFailure({ class: "request", status: 400, param: "image", detail })
  )
