import { Effect, Option } from "effect"
import type { ImageType, MeasuredPicture, Pixels } from "../../domain/Media.ts"
import { awaitSlice, type Steps } from "../runtime/EventLoop.ts"
import { view } from "./Base64.ts"

/**
 * The steps of a function that returns the size of an image; undefined if the file is incomplete, which the package
 * `image-size` does not notice. It decodes nothing, because decoding a large image takes seconds. Decoders allocate the
 * declared size of every frame, so the result is the maximum over all frames.
 */
type SizeSteps = Steps<Pixels | undefined>

const stepsPerTurn = 16_384

const enclose = (a: Pixels, b: Pixels): Pixels => ({
  width: Math.max(a.width, b.width),
  height: Math.max(a.height, b.height)
})

/** Returns the name of a chunk as a number, because comparing texts would dominate the cost. */
const tag = (name: string): number => Buffer.from(name, "latin1").readUInt32BE(0)

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const pngFrame = 12
const pngHeaderLength = 13
const [pngHeader, pngData, pngEnd] = [tag("IHDR"), tag("IDAT"), tag("IEND")]
const maxPngSide = 0x7fffffff

const pngDepths: Readonly<Record<number, ReadonlyArray<number>>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16]
}

const isPngSide = (pixels: number): boolean => pixels > 0 && pixels <= maxPngSide

const hasPngHeader = (bytes: Buffer, at: number): boolean =>
  bytes.length >= at + pngFrame + pngHeaderLength &&
  bytes.readUInt32BE(at) === pngHeaderLength &&
  bytes.readUInt32BE(at + 4) === pngHeader &&
  isPngSide(bytes.readUInt32BE(at + 8)) &&
  isPngSide(bytes.readUInt32BE(at + 12)) &&
  (pngDepths[bytes.readUInt8(at + 17)]?.includes(bytes.readUInt8(at + 16)) ?? false)

function* measurePng(bytes: Buffer): SizeSteps {
  let at = pngSignature.length
  if (!bytes.subarray(0, at).equals(pngSignature) || !hasPngHeader(bytes, at)) return undefined
  const size = { width: bytes.readUInt32BE(at + 8), height: bytes.readUInt32BE(at + 12) }
  let hasPixels = false
  at += pngFrame + pngHeaderLength
  for (let steps = 1; at + pngFrame <= bytes.length; steps++) {
    if (steps % stepsPerTurn === 0) yield
    const end = at + pngFrame + bytes.readUInt32BE(at)
    if (end > bytes.length) return undefined
    const name = bytes.readUInt32BE(at + 4)
    if (name === pngHeader) return undefined
    if (name === pngEnd) return hasPixels ? size : undefined
    hasPixels ||= name === pngData
    at = end
  }
  return undefined
}

const jpegStart = 0xd8
const jpegEnd = 0xd9
const jpegScan = 0xda
const minJpegFrame = 8

const isJpegFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

const hasNoLength = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)

function* skipScan(bytes: Buffer, from: number): Steps<number> {
  let at = bytes.indexOf(0xff, from)
  for (let steps = 1; at !== -1 && at + 1 < bytes.length; at = bytes.indexOf(0xff, at + 1), steps++) {
    if (steps % stepsPerTurn === 0) yield
    const next = bytes.readUInt8(at + 1)
    if (next !== 0x00 && next !== 0xff && !hasNoLength(next)) return at
  }
  return bytes.length
}

function* measureJpeg(bytes: Buffer): SizeSteps {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xff00 + jpegStart) return undefined
  let size: Pixels | undefined
  let hasScan = false
  let at = 2
  for (let steps = 1; at + 1 < bytes.length; steps++) {
    if (steps % stepsPerTurn === 0) yield
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes.readUInt8(at + 1)
    if (marker === jpegEnd) return hasScan ? size : undefined
    if (marker === 0xff || hasNoLength(marker)) {
      at += marker === 0xff ? 1 : 2
      continue
    }
    if (marker === 0x00 || marker === jpegStart || at + 4 > bytes.length) return undefined
    const length = bytes.readUInt16BE(at + 2)
    const next = at + 2 + length
    if (length < 2 || next > bytes.length) return undefined
    if (isJpegFrame(marker)) {
      // Rejects a second frame: no common decoder shows it, but some allocate memory for it.
      if (size !== undefined || length < minJpegFrame) return undefined
      size = { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
      if (size.width === 0 || size.height === 0) return undefined
    }
    if (marker === jpegScan && size === undefined) return undefined
    hasScan ||= marker === jpegScan
    at = marker === jpegScan ? yield* skipScan(bytes, next) : next
  }
  return undefined
}

const webpFrame = 8
const riffHeader = 12
const webpSides = 0x3fff
const vp8Header = 10
const vp8lHeader = 5
const vp8xHeader = 10
const animationHeader = 16
const [lossyChunk, losslessChunk, extendedChunk, animationChunk] = [tag("VP8 "), tag("VP8L"), tag("VP8X"), tag("ANMF")]

const hasWebpPixels = (bytes: Buffer, name: number, at: number, length: number): boolean => {
  if (name === lossyChunk) {
    return (
      length >= vp8Header &&
      // Only a key frame can be decoded without others.
      (bytes.readUInt8(at) & 1) === 0 &&
      bytes.readUIntBE(at + 3, 3) === 0x9d012a &&
      (bytes.readUInt16LE(at + 6) & webpSides) > 0 &&
      (bytes.readUInt16LE(at + 8) & webpSides) > 0
    )
  }
  return name === losslessChunk && length > vp8lHeader && bytes.readUInt8(at) === 0x2f
}

const webpSize = (bytes: Buffer, name: number, at: number, length: number): Pixels => {
  if (name === extendedChunk && length >= vp8xHeader) {
    return { width: bytes.readUIntLE(at + 4, 3) + 1, height: bytes.readUIntLE(at + 7, 3) + 1 }
  }
  if (name === animationChunk && length >= animationHeader) {
    const [x, y] = [2 * bytes.readUIntLE(at, 3), 2 * bytes.readUIntLE(at + 3, 3)]
    return { width: x + bytes.readUIntLE(at + 6, 3) + 1, height: y + bytes.readUIntLE(at + 9, 3) + 1 }
  }
  if (name === lossyChunk && length >= vp8Header) {
    return { width: bytes.readUInt16LE(at + 6) & webpSides, height: bytes.readUInt16LE(at + 8) & webpSides }
  }
  if (name !== losslessChunk || length < vp8lHeader) return { width: 0, height: 0 }
  const sides = bytes.readUInt32LE(at + 1)
  return { width: (sides & webpSides) + 1, height: ((sides >>> 14) & webpSides) + 1 }
}

function* measureWebp(bytes: Buffer): SizeSteps {
  if (bytes.length < riffHeader + webpFrame) return undefined
  if (bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WEBP") return undefined
  const end = webpFrame + bytes.readUInt32LE(4)
  if (end > bytes.length || ![lossyChunk, losslessChunk, extendedChunk].includes(bytes.readUInt32BE(12)))
    return undefined
  let size: Pixels = { width: 0, height: 0 }
  let hasPixels = false
  let at = riffHeader
  let frameEnd = 0
  for (let steps = 1; at + webpFrame <= end; steps++) {
    if (steps % stepsPerTurn === 0) yield
    const isInFrame = at < frameEnd
    const start = at + webpFrame
    if (isInFrame && start > frameEnd) {
      at = frameEnd + (frameEnd % 2)
      continue
    }
    const name = bytes.readUInt32BE(at)
    const length = bytes.readUInt32LE(at + 4)
    if (start + length > (isInFrame ? frameEnd : end)) return undefined
    hasPixels ||= hasWebpPixels(bytes, name, start, length)
    size = enclose(size, webpSize(bytes, name, start, length))
    at = start + length + (length % 2)
    // A frame of an animation contains chunks after its header.
    if (name !== animationChunk || isInFrame || length < animationHeader) continue
    frameEnd = start + length
    at = start + animationHeader
  }
  return hasPixels ? size : undefined
}

const gifHeader = 13
const gifDescriptor = 10
const gifExtension = 0x21
const gifImage = 0x2c
const gifTrailer = 0x3b

const tableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))

function* skipBlocks(bytes: Buffer, from: number): Steps<number> {
  let at = from
  for (let steps = 1; at < bytes.length; steps++) {
    if (steps % stepsPerTurn === 0) yield
    const length = bytes.readUInt8(at)
    at += 1 + length
    if (length === 0) return at
  }
  return bytes.length
}

function* measureGif(bytes: Buffer): SizeSteps {
  if (bytes.length < gifHeader || !/^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6))) return undefined
  let size: Pixels = { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
  if (size.width === 0 || size.height === 0) return undefined
  let hasPixels = false
  let at = gifHeader + tableBytes(bytes.readUInt8(10))
  for (let steps = 1; at < bytes.length; steps++) {
    if (steps % stepsPerTurn === 0) yield
    const kind = bytes.readUInt8(at)
    if (kind === gifTrailer) return hasPixels ? size : undefined
    if (kind === gifExtension) {
      at = yield* skipBlocks(bytes, at + 2)
      continue
    }
    if (kind !== gifImage || at + gifDescriptor > bytes.length) return undefined
    const [width, height] = [bytes.readUInt16LE(at + 5), bytes.readUInt16LE(at + 7)]
    if (width === 0 || height === 0) return undefined
    size = enclose(size, {
      width: bytes.readUInt16LE(at + 1) + width,
      height: bytes.readUInt16LE(at + 3) + height
    })
    hasPixels = true
    // The compressed data starts after one byte, the size of its first codes.
    at = yield* skipBlocks(bytes, at + gifDescriptor + tableBytes(bytes.readUInt8(at + 9)) + 1)
  }
  return undefined
}

/** Excludes QuickTime (`qt  `), audio (`M4A `) and stills (`heic`, `avif`), which share the container format. */
const videoBrand = /^(?:iso[m2-9]|isoa|isob|isoc|mp4[12]|avc1|hvc1|hev1|av01|dash|msdh|MSNV|M4V[ HP]|cmf[c2s])$/
const boxesAfterType = /^(?:moov|moof|mdat|free|skip|wide|uuid|pdin|meta|sidx|styp|prft|emsg|udta)$/
const minTypeBox = 16
const boxFrame = 8

const isMp4Start = (header: Buffer): boolean => {
  if (header.length < minTypeBox + boxFrame || header.toString("latin1", 4, 8) !== "ftyp") return false
  const next = header.readUInt32BE(0)
  if (next < minTypeBox || next % 4 !== 0 || next + boxFrame > header.length) return false
  return (
    videoBrand.test(header.toString("latin1", 8, 12)) &&
    boxesAfterType.test(header.toString("latin1", next + 4, next + 8))
  )
}

const formats: ReadonlyArray<readonly [ImageType, (bytes: Buffer) => SizeSteps]> = [
  ["image/png", measurePng],
  ["image/jpeg", measureJpeg],
  ["image/webp", measureWebp],
  ["image/gif", measureGif]
]

const run = Effect.fnUntraced(function* <A>(steps: Steps<A>) {
  while (true) {
    const step = steps.next()
    if (step.done === true) return step.value
    yield* awaitSlice
  }
})

/**
 * Returns none unless the file is a complete PNG, JPEG, WebP or GIF. Decodes no pixels, so a false size allocates
 * nothing.
 */
export const pictureOf = Effect.fnUntraced(function* (
  bytes: Uint8Array
): Effect.fn.Return<Option.Option<MeasuredPicture>> {
  const file = view(bytes)
  for (const [type, measure] of formats) {
    const size = yield* run(measure(file))
    if (size !== undefined) return Option.some({ type, bytes, ...size })
  }
  return Option.none()
})

export const isVideo = (header: Uint8Array): Effect.Effect<boolean> => Effect.sync(() => isMp4Start(view(header)))
