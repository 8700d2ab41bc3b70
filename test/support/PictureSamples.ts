import { crc32, deflateSync } from "node:zlib"
import { Effect } from "effect"
import sharp from "sharp"
import type { Picture } from "../../src/domain/Media.ts"

/** A picture of one colour. */
export const plain = (colour: string, width = 200, height = 100): Effect.Effect<Picture> =>
  Effect.promise(() =>
    sharp({ create: { width, height, channels: 3, background: colour } })
      .png()
      .toBuffer()
  ).pipe(Effect.map((bytes) => ({ type: "image/png", bytes })))

/** A whole PNG, all black, of one bit a pixel: as large as wanted for little work. */
export const blank = (width: number, height: number): Buffer => {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data])
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    check.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, check])
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.writeUInt8(1, 8)
  const rows = deflateSync(Buffer.alloc(height * (1 + Math.ceil(width / 8))), { level: 1 })
  const signature = Buffer.from("89504e470d0a1a0a", "hex")
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))])
}

export interface Pixels {
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly at: (x: number, y: number) => readonly [red: number, green: number, blue: number]
}

export const pixelsOf = (bytes: Uint8Array): Effect.Effect<Pixels> =>
  Effect.promise(() => sharp(bytes).raw().toBuffer({ resolveWithObject: true })).pipe(
    Effect.map(({ data, info: { channels, height, width } }) => ({
      width,
      height,
      channels,
      at: (x, y) => {
        const start = (y * width + x) * channels
        return [data[start] ?? -1, data[start + 1] ?? -1, data[start + 2] ?? -1]
      }
    }))
  )

interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** How many pixels of an area are white, as letters are and no background is. */
export const whiteIn = (pixels: Pixels, { height, width, x, y }: Area): number => {
  let count = 0
  for (let down = y; down < y + height; down++) {
    for (let right = x; right < x + width; right++) {
      if (pixels.at(right, down).every((value) => value > 240)) count++
    }
  }
  return count
}
