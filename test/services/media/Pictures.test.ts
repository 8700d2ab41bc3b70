import { Effect, Fiber, Option } from "effect"
import { isVideo, pictureOf } from "../../../src/services/media/Pictures.ts"
import * as EventLoop from "../../../src/services/runtime/EventLoop.ts"
import { largeFrames, placedFrames } from "../../harness/fixtures/LargeFrames.ts"
import { samplePictures } from "../../harness/fixtures/SamplePictures.ts"
import { assert, describe, it } from "../../harness/It.ts"

const samples = Object.entries(samplePictures)
const { GIF: gif, JPEG: jpeg, PNG: png, WebP: webp } = samplePictures

const verdict = (bytes: Uint8Array) =>
  Effect.map(
    pictureOf(bytes),
    Option.map(({ type }) => type)
  )
const refused = (bytes: Uint8Array, what: string) =>
  Effect.map(verdict(bytes), (found) => assert.isTrue(Option.isNone(found), what))
const changed = (bytes: Uint8Array, at: number, to: ReadonlyArray<number>) => {
  const copy = Buffer.from(bytes)
  copy.set(to, at)
  return copy
}

describe("a real picture", () => {
  it.effect.each(samples)("is recognized: %s", function* ([, sample]) {
    const { bytes, type } = sample
    assert.deepStrictEqual(yield* pictureOf(bytes), Option.some(sample))
    const inside = Buffer.concat([Buffer.from("before"), bytes, Buffer.from("after")])
    assert.deepStrictEqual(yield* verdict(inside.subarray(6, 6 + bytes.length)), Option.some(type))
    assert.deepStrictEqual(yield* verdict(inside.subarray(6)), Option.some(type))
  })

  it.effect.each(samples)("is refused when it was cut off anywhere: %s", function* ([, { bytes }]) {
    for (let length = 0; length < bytes.length; length++) yield* refused(bytes.subarray(0, length), `${length} bytes`)
  })

  it.effect.each(samples)("never breaks the check, however it is damaged: %s", function* ([, { bytes }]) {
    for (let at = 0; at < bytes.length; at++) {
      for (const value of [0, 0x7f, 0xff]) yield* pictureOf(changed(bytes, at, [value]))
    }
    yield* refused(Buffer.concat([Buffer.from(" "), bytes]), "something before it")
    yield* refused(changed(bytes, 0, [0]), "another first byte")
  })
})

describe("a picture's size", () => {
  it.effect.each(Object.entries({ ...largeFrames, ...placedFrames }))(
    "covers every frame: %s",
    function* ([, [bytes, size]]) {
      const measured = Option.map(yield* pictureOf(bytes), ({ height, width }) => ({ width, height }))
      assert.deepStrictEqual(Option.getOrUndefined(measured), size)
    }
  )
})

const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const html = Buffer.from("<!doctype html><html><body>Not found</body></html>".repeat(20))
const heads: ReadonlyArray<readonly [string, Buffer]> = [
  ["a PNG", pngSignature],
  ["a JPEG", Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
  ["a WebP", Buffer.from("RIFF\u0040\0\0\0WEBPVP8 ", "latin1")],
  ["a GIF", Buffer.from("GIF89a", "latin1")]
]

describe("a file that only looks like a picture", () => {
  it.effect.each(heads)("is refused: HTML behind the signature of %s", ([what, head]) =>
    refused(Buffer.concat([head, html]), what)
  )

  const others: ReadonlyArray<readonly [string, Uint8Array]> = [
    ["nothing", new Uint8Array(0)],
    ["HTML", html],
    ["SVG", Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')],
    ["BMP", Buffer.from(`BM${"\0".repeat(60)}`, "latin1")],
    ["a PDF", Buffer.from("%PDF-1.7\n%%EOF")],
    ["a ZIP", Buffer.from("PK\u0003\u0004".padEnd(64, "\0"), "latin1")],
    ["only a PNG's signature", pngSignature],
    ["a JPEG without a frame", Buffer.from([0xff, 0xd8, 0xff, 0xda, 0, 2, 1, 2, 0xff, 0xd9])],
    ["a JPEG of marks alone", Buffer.from([0xff, 0xd8, 0xff, 0xd9])],
    ["a WebP that is a WAV", Buffer.from("RIFF\u0004\0\0\0WAVEfmt \0\0\0\0", "latin1")],
    ["an empty WebP", Buffer.from("RIFF\u000c\0\0\0WEBPVP8X\0\0\0\0", "latin1")],
    ["a GIF without a picture", Buffer.from("GIF89a\u0001\0\u0001\0\0\0\0;", "latin1")]
  ]
  it.effect.each(others)("is none: %s", ([what, bytes]) => refused(bytes, what))

  it.effect("is refused with a side of zero, or an impossible header", function* () {
    yield* refused(changed(png.bytes, 16, [0, 0, 0, 0]), "PNG width")
    yield* refused(changed(png.bytes, 20, [0, 0, 0, 0]), "PNG height")
    yield* refused(changed(png.bytes, 16, [0xff, 0xff, 0xff, 0xff]), "PNG width beyond its format")
    yield* refused(changed(png.bytes, 24, [3]), "PNG depth")
    yield* refused(changed(png.bytes, 8, [0xff]), "PNG header of 4 GiB")
    const frame = Buffer.from(jpeg.bytes).indexOf(Buffer.from([0xff, 0xc0]))
    yield* refused(changed(jpeg.bytes, frame + 5, [0, 0]), "JPEG height")
    yield* refused(changed(jpeg.bytes, frame + 7, [0, 0]), "JPEG width")
    yield* refused(changed(webp.bytes, 26, [0, 0]), "WebP width")
    yield* refused(changed(webp.bytes, 28, [0, 0]), "WebP height")
    yield* refused(changed(webp.bytes, 16, [0xff, 0xff, 0xff, 0xff]), "WebP chunk of 4 GiB")
    yield* refused(changed(gif.bytes, 6, [0, 0]), "GIF width")
    yield* refused(changed(gif.bytes, 8, [0, 0]), "GIF height")
  })

  const length = 4 * 1024 * 1024
  const endless: ReadonlyArray<readonly [string, Uint8Array, number, ReadonlyArray<number>]> = [
    ["a JPEG", jpeg.bytes, -2, [0xff, 0x00]],
    ["a JPEG of fill bytes", jpeg.bytes, -2, [0xff]],
    ["a JPEG of empty segments", jpeg.bytes, -2, [0xff, 0xe0, 0, 2]],
    ["a GIF", gif.bytes, -1, [0x21, 0xff, 0]],
    ["a GIF of one-byte blocks", gif.bytes, -2, [1]],
    ["a PNG of empty chunks", png.bytes, -12, [0, 0, 0, 0, 0x74, 0x45, 0x58, 0x74, 0, 0, 0, 0]]
  ]
  it.effect.each(endless)("is refused without an end, and other work goes on: %s", function* ([, bytes, cut, more]) {
    let turns = 0
    const other = yield* Effect.fork(Effect.forever(Effect.map(EventLoop.yieldTurn, () => turns++)))
    yield* refused(Buffer.concat([bytes.subarray(0, cut), Buffer.alloc(length, Buffer.from(more))]), "endless")
    yield* Fiber.interrupt(other)
    assert.isAbove(turns, 10)
  })
})

const box = (name: string, body = "", size = 8 + body.length) => {
  const bytes = Buffer.from(`\0\0\0\0${name}${body}`, "latin1")
  bytes.writeUInt32BE(size)
  return bytes
}
const typed = (brand: string, others = "") => box("ftyp", `${brand}\0\0\u0002\0${others}`)
const file = (brand: string, next = box("moov")) => Buffer.concat([typed(brand, `${brand}mp41`), next])

describe("a video", () => {
  const known = ["isom", "iso2", "iso5", "iso6", "mp41", "mp42", "avc1", "M4V ", "dash", "MSNV"]
  it.effect.each(known)("of the brand %s is MP4", (brand) =>
    Effect.map(isVideo(file(brand)), (video) => assert.isTrue(video))
  )

  const not: ReadonlyArray<readonly [string, Uint8Array]> = [
    ["QuickTime", file("qt  ", box("wide"))],
    ["a QuickTime film without a type", Buffer.concat([box("moov", "x".repeat(32)), box("mdat")])],
    ["audio", file("M4A ")],
    ["HEIC", file("heic", box("meta"))],
    ["AVIF", file("avif", box("meta"))],
    ["no brand at all", file("\0\0\0\0")],
    ["nothing behind its type", typed("isom", "isommp41")],
    ["HTML behind its type", file("isom", html)],
    ["a type that claims too much", Buffer.concat([box("ftyp", "isom\0\0\0\0isom", 0xfffffff0), box("moov")])],
    ["a type that claims too little", Buffer.concat([box("ftyp", "isom\0\0\0\0isom", 8), box("moov")])],
    ["WebM", Buffer.from([0x1a, 0x45, 0xdf, 0xa3, ...Buffer.alloc(64)])],
    ["HTML", html],
    ["nothing", new Uint8Array(0)]
  ]
  it.effect.each(not)("is not: %s", ([, bytes]) => Effect.map(isVideo(bytes), (video) => assert.isFalse(video)))

  it.effect("is not recognized by less than its beginning", function* () {
    const bytes = file("isom")
    for (let length = 0; length < bytes.length; length++) assert.isFalse(yield* isVideo(bytes.subarray(0, length)))
  })
})
