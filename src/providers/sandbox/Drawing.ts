/** Draws a prompt on a coloured backdrop, row by row: a picture of 4096 pixels a side is never whole in memory. */
import { createHash } from "node:crypto"
import { Readable } from "node:stream"
import { buffer } from "node:stream/consumers"
import { pipeline } from "node:stream/promises"
import { crc32, createDeflate } from "node:zlib"
import { Effect } from "effect"
import { type Area, drawLetter, fullInk, layOut, widthOf } from "./Lettering.ts"

export interface Box extends Area {
  readonly x: number
  readonly y: number
}

/** Four bytes a pixel: red, green, blue and opacity. */
export interface Photo extends Box {
  readonly pixels: Uint8Array
}

/** In pixels. */
export interface Scene extends Area {
  readonly prompt: string
  readonly promptBox: Box
  /** Heights of a line, the largest first. */
  readonly heights: ReadonlyArray<number>
  readonly note: string
  readonly noteBox: Box
  readonly photos: ReadonlyArray<Photo>
}

/** Colours: the sky, the sky behind a disc, and the ink of the prompt and of the note. */
const shades = 120
const promptInk = 2 * shades
const noteInk = promptInk + fullInk

type Colour = readonly [red: number, green: number, blue: number]

const white: Colour = [255, 255, 255]

const mix = ([r, g, b]: Colour, [red, green, blue]: Colour, share: number): Colour => [
  r + (red - r) * share,
  g + (green - g) * share,
  b + (blue - b) * share
]

/** https://www.w3.org/TR/css-color-4/#hsl-to-rgb */
const fromHsl = (hue: number, saturation: number, lightness: number): Colour => {
  const channel = (n: number): number => {
    const k = (n + hue / 30) % 12
    const spread = saturation * Math.min(lightness, 1 - lightness)
    return 255 * (lightness - spread * Math.max(-1, Math.min(k - 3, 9 - k, 1)))
  }
  return [channel(0), channel(8), channel(4)]
}

const paletteOf = (seed: Buffer): Uint8Array => {
  const hue = seed.readUInt16BE(0) % 360
  const from = fromHsl(hue, 0.5, 0.22)
  const to = fromHsl((hue + 30 + (seed.readUInt8(2) % 60)) % 360, 0.55, 0.34)
  const sky = Array.from({ length: shades }, (_, shade) => mix(from, to, shade / (shades - 1)))
  const middle = mix(from, to, 0.5)
  const inks = Array.from({ length: fullInk }, (_, ink) => (ink + 1) / fullInk)
  const colours = [
    ...sky,
    ...sky.map((colour) => mix(colour, white, 0.05)),
    ...inks.map((ink) => mix(middle, white, ink)),
    ...inks.map((ink) => mix(middle, white, 0.7 * ink))
  ]
  return Uint8Array.from(colours.flat(), Math.round)
}

/** Writes one row of a picture, as colours of its palette. */
type Painter = (row: Uint8Array, y: number) => void

/** A gradient from corner to corner: each row is the one above it, a little further on. */
const paintBackdrop = ({ height, width }: Area, seed: Buffer): Painter => {
  const sky = Uint8Array.from({ length: 2 * width }, (_, at) => Math.floor((shades * at) / (2 * width)))
  const lightSky = sky.map((shade) => shades + shade)
  const discs = [4, 8, 12].map((at) => ({
    x: (width * seed.readUInt8(at)) / 255,
    y: (height * seed.readUInt8(at + 1)) / 255,
    radius: (0.15 + seed.readUInt8(at + 2) / 850) * Math.hypot(width, height) * Math.SQRT1_2
  }))
  return (row, y) => {
    const from = Math.floor((width * y) / height)
    row.set(sky.subarray(from, from + width))
    for (const disc of discs) {
      const half = Math.sqrt(Math.max(0, disc.radius ** 2 - (y - disc.y) ** 2))
      const [left, right] = [disc.x - half, disc.x + half].map((x) => Math.round(Math.min(width, Math.max(0, x))))
      if (left !== undefined) row.set(lightSky.subarray(from + left, from + (right ?? left)), left)
    }
  }
}

const paintText = (text: string, box: Box, heights: ReadonlyArray<number>, colour: number): Painter => {
  const { height, lines } = layOut(text, box, heights)
  const width = widthOf(height)
  const drawn = new Map<string, Uint8Array>()
  const inkOf = (letter: string): Uint8Array => {
    const ink = drawn.get(letter) ?? drawLetter(letter, height)
    drawn.set(letter, ink)
    return ink
  }
  return (row, y) => {
    const line = lines[Math.floor((y - box.y) / height)] ?? []
    const from = width * ((y - box.y) % height)
    line.forEach((letter, at) => {
      if (letter === " ") return
      const left = box.x + at * width
      const ink = inkOf(letter).subarray(from, from + width)
      for (let x = 0; x < width; x++) {
        const value = ink[x] ?? 0
        if (value > 0) row[left + x] = colour + value - 1
      }
    })
  }
}

const blend = (row: Uint8Array, { height, pixels, width, x, y }: Photo, at: number): void => {
  if (at < y || at >= y + height) return
  const from = 4 * width * (at - y)
  for (let column = 0; column < width; column++) {
    const pixel = from + 4 * column
    const opacity = (pixels[pixel + 3] ?? 0) / 255
    for (let channel = 0; channel < 3; channel++) {
      const place = 3 * (x + column) + channel
      const under = row[place] ?? 0
      row[place] = Math.round(under + ((pixels[pixel + channel] ?? 0) - under) * opacity)
    }
  }
}

interface Painting {
  readonly palette: Uint8Array
  readonly paint: Painter
  /** Three bytes a pixel, with the photos. */
  readonly paintRgb: Painter
}

const paintScene = (scene: Scene): Painting => {
  const { heights, note, noteBox, photos, prompt, promptBox, width } = scene
  const seed = createHash("sha256").update(prompt).update("\0").update(note).digest()
  const palette = paletteOf(seed)
  const smaller = [0.75, 0.5].map((share) => Math.max(2, Math.floor(noteBox.height * share)))
  const painters = [
    paintBackdrop(scene, seed),
    paintText(prompt, promptBox, heights, promptInk),
    paintText(note, noteBox, smaller, noteInk)
  ]
  const paint: Painter = (row, y) => painters.forEach((painter) => painter(row, y))
  const shaded = new Uint8Array(width)
  return {
    palette,
    paint,
    paintRgb: (row, y) => {
      paint(shaded, y)
      for (let x = 0; x < width; x++) {
        const colour = 3 * (shaded[x] ?? 0)
        row[3 * x] = palette[colour] ?? 0
        row[3 * x + 1] = palette[colour + 1] ?? 0
        row[3 * x + 2] = palette[colour + 2] ?? 0
      }
      for (const photo of photos) blend(row, photo, y)
    }
  }
}

/** Three bytes a pixel. */
export const drawPixels = (scene: Scene): Uint8Array => {
  const { paintRgb } = paintScene(scene)
  const stride = 3 * scene.width
  const pixels = new Uint8Array(stride * scene.height)
  for (let y = 0; y < scene.height; y++) paintRgb(pixels.subarray(y * stride, (y + 1) * stride), y)
  return pixels
}

/** Rows in a turn of the event loop. */
const rowsPerTurn = 32

function* scanLines({ height }: Area, stride: number, paint: Painter): Generator<Buffer> {
  for (let top = 0; top < height; top += rowsPerTurn) {
    const lines = Buffer.alloc(Math.min(rowsPerTurn, height - top) * (1 + stride))
    for (let at = 0; at < lines.length; at += 1 + stride) {
      paint(lines.subarray(at + 1, at + 1 + stride), top + at / (1 + stride))
    }
    yield lines
  }
}

const chunk = (type: string, data: Uint8Array): Buffer => {
  const framed = Buffer.alloc(12 + data.length)
  framed.writeUInt32BE(data.length)
  framed.write(type, 4, "latin1")
  framed.set(data, 8)
  framed.writeUInt32BE(crc32(framed.subarray(4, 8 + data.length)), 8 + data.length)
  return framed
}

const signature = Buffer.from("89504e470d0a1a0a", "hex")

const encodePng = async (scene: Scene, signal: AbortSignal): Promise<Buffer> => {
  const { height, photos, width } = scene
  const { paint, paintRgb, palette } = paintScene(scene)
  const isIndexed = photos.length === 0
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, isIndexed ? 3 : 2], 8)
  const lines = isIndexed ? scanLines(scene, width, paint) : scanLines(scene, 3 * width, paintRgb)
  const deflate = createDeflate({ level: 1, chunkSize: 65_536 })
  const data = await pipeline(Readable.from(lines), deflate, buffer, { signal })
  const colours = isIndexed ? [chunk("PLTE", palette)] : []
  const chunks = [chunk("IHDR", header), ...colours, chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]
  return Buffer.concat([signature, ...chunks])
}

/** Half of the four threads for files, names and compression. */
const turns = Effect.unsafeMakeSemaphore(2)

/** A PNG of one byte a pixel, or of three if it shows photos. */
export const drawPng = (scene: Scene): Effect.Effect<Buffer> =>
  turns.withPermits(1)(Effect.promise((signal) => encodePng(scene, signal)))
