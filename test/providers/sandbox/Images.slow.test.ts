import { Chunk, Clock, Effect, Fiber, Option, TestClock } from "effect"
import type { Picture } from "../../../src/domain/Media.ts"
import type { Resolution, Shape } from "../../../src/domain/Model.ts"
import { decodeReference } from "../../../src/providers/sandbox/References.ts"
import { pictureOf } from "../../../src/services/media/Pictures.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import * as EventLoop from "../../../src/services/runtime/EventLoop.ts"
import { largeFrames } from "../../harness/fixtures/LargeFrames.ts"
import { greyPng, samplePictures, transparentPng, turnedJpeg } from "../../harness/fixtures/SamplePictures.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { blank, type Pixels, pixelsOf, plain, whiteIn } from "./PictureSamples.ts"
import { draw, failureOf, imageOf, imageRequest, imageRoute } from "./SandboxMedia.ts"

/** Where the prompt stands in a picture of 1024 pixels, and beside references. */
const text = { x: 72, y: 72, width: 880, height: 800 }
const textBeside = { ...text, width: 480 }
const margins = [
  { x: 0, y: 0, width: 1024, height: 72 },
  { x: 0, y: 0, width: 72, height: 1024 },
  { x: 952, y: 0, width: 72, height: 1024 },
  { x: 0, y: 872, width: 1024, height: 152 }
]

const lettersOf = Effect.fnUntraced(function* (prompt: string) {
  const { bytes } = yield* draw({ prompt })
  const pixels = pixelsOf(bytes)
  for (const margin of margins) assert.strictEqual(whiteIn(pixels, margin), 0, "letters stay in their place")
  return whiteIn(pixels, text)
})

describe("a picture", () => {
  const sizes: ReadonlyArray<readonly [Resolution, number]> = [
    ["1K", 1024],
    ["2K", 2048],
    ["4K", 4096]
  ]
  it.effect.each(sizes)(
    "of %s is a whole PNG of %i pixels a side that shows its prompt",
    function* ([resolution, side]) {
      const { bytes, revisedPrompt } = yield* draw({ resolution })
      assert.isUndefined(revisedPrompt)
      const measured = yield* pictureOf(bytes)
      assert.deepStrictEqual(measured, Option.some({ type: "image/png", bytes, width: side, height: side }))
      const pixels = pixelsOf(bytes)
      assert.deepStrictEqual([pixels.width, pixels.height], [side, side])
      const by = side / 1024
      const firstLine = { x: 72 * by, y: 72 * by, width: 880 * by, height: 110 * by }
      assert.isAbove(whiteIn(pixels, firstLine), 3_000 * by * by)
    }
  )

  const shapes: ReadonlyArray<readonly [Shape, Resolution, number, number]> = [
    [{ aspectRatio: "2:3", size: "1024x1536" }, "1K", 1_024, 1_536],
    [{ aspectRatio: "16:9", size: undefined }, "1K", 1_360, 768],
    [{ aspectRatio: "1:8", size: undefined }, "1K", 368, 2_896]
  ]
  it.effect.each(shapes)(
    "of the shape %j at %s is %i wide and %i high",
    function* ([shape, resolution, width, height]) {
      const { bytes } = yield* draw({ shape, resolution, references: [plain("#ff0000")] })
      const pixels = pixelsOf(bytes)
      assert.deepStrictEqual([pixels.width, pixels.height], [width, height])
      assert.isAbove(whiteIn(pixels, { x: 0, y: 0, width, height }), 300)
    }
  )

  it.effect("has the same bytes for the same input only, whichever route draws it", function* () {
    const { bytes } = yield* draw({})
    const same = [
      draw({}),
      draw({}, imageRoute("sandbox-b")),
      draw({ prompt: "[sandbox delay=0 routes=2] A red fox" }),
      draw({ prompt: "A red fox [SANDBOX fail]" })
    ]
    for (const again of same) assert.isTrue(Buffer.from(bytes).equals((yield* again).bytes))
    const others = [
      draw({ prompt: "A red fax" }),
      draw({ prompt: "" }),
      draw({}, { ...imageRoute(), model: "another" }),
      draw({ resolution: "2K" })
    ]
    for (const other of others) assert.isFalse(Buffer.from(bytes).equals((yield* other).bytes))
  })

  it.effect("has as many letters as its prompt", function* () {
    assert.strictEqual(yield* lettersOf(""), 0)
    assert.strictEqual(yield* lettersOf(" \n\t [sandbox delay=0] "), 0)
    const one = yield* lettersOf("n")
    assert.isAbove(one, 300)
    const ten = yield* lettersOf("nnnnn nnnnn")
    assert.approximately(ten / one, 10, 0.5)
  })

  const prompts = {
    "a long one": "The quick brown fox jumps over the lazy dog. ".repeat(2_000),
    "one without spaces": "m".repeat(50_000),
    "many lines": "line\r\n".repeat(500),
    "lines higher than the library draws": "mm\n".repeat(500),
    "a line that cannot be broken": "\u0915\u094d".repeat(500),
    "accents and other alphabets": "Zażółć e\u0301 Ελληνικά Кириллица עברית العربية",
    "what the font lacks": "你好世界 \u{1f389} \u{1f469}\u200d\u{1f467} \u{10ffff}",
    "half a pair, and controls": "\ud800 a \udfff\u0000\u0007\u001b[31m b",
    markup: `</svg><image href="file:///etc/passwd"/> & <text>&lol;</text>`
  }
  it.effect.each(Object.entries(prompts))("takes %s", function* ([, prompt]) {
    assert.isAbove(yield* lettersOf(prompt), 1_000)
  })

  it.effect("wraps at spaces, and shrinks its letters only when they would not fit", function* () {
    const rowsOf = Effect.fnUntraced(function* (prompt: string) {
      const { bytes } = yield* draw({ prompt })
      const pixels = pixelsOf(bytes)
      const written = Array.from({ length: 800 }, (_, y) => whiteIn(pixels, { ...text, y: 72 + y, height: 1 }) > 0)
      return written.filter((row, index) => row && written[index - 1] !== true).length
    })
    assert.strictEqual(yield* rowsOf("nnnn"), 1)
    assert.strictEqual(yield* rowsOf("nnnn\nnnnn\nnnnn"), 3)
    assert.strictEqual(yield* rowsOf("nnnnnnnnnn nnnnnnnnnn nnnnnnnnnn"), 3)
    assert.isAbove(yield* rowsOf("nnnnnnnnnn ".repeat(60)), 10)
  })

  const large: ReadonlyArray<readonly [string, ReadonlyArray<Picture>]> = [
    ["without references", []],
    ["with a large reference", [plain("#ffffff", 4_000, 4_000)]]
  ]
  it.effect.each(large)("leaves the event loop free while it is drawn: %s", function* ([, references]) {
    let turns = 0
    let going = true
    const turn = () => {
      turns++
      if (going) setImmediate(turn)
    }
    yield* draw({})
    turn()
    yield* draw({ resolution: "4K", references })
    going = false
    assert.isAbove(turns, 100)
  })
})

describe("an edit", () => {
  it.effect("shows its references beside the prompt", function* () {
    const [red, blue] = [plain("#ff0000"), plain("#0000ff", 100, 300)]
    const { bytes } = yield* draw({ references: [red, blue] })
    const pixels = pixelsOf(bytes)
    assert.isAbove(whiteIn(pixels, textBeside), 3_000)
    // The left column of a place 360 wide and 388 high, and the one below it.
    assert.deepStrictEqual(pixels.at(770, 80), [255, 0, 0])
    assert.deepStrictEqual(pixels.at(770, 600), [0, 0, 255])
    const { bytes: swapped } = yield* draw({ references: [blue, red] })
    assert.deepStrictEqual(pixelsOf(swapped).at(770, 80), [0, 0, 255])
  })

  /** The pixel in the middle of the place of each of eight references. */
  const middles = (pixels: Pixels, by: number) =>
    Array.from({ length: 8 }, (_, index) => {
      const [column, row] = [index % 2, Math.floor(index / 2)]
      return pixels.at(by * (592 + 84 + 192 * column), by * (72 + 91 + 206 * row))
    })

  const samples = Object.values(samplePictures)
  const lots: ReadonlyArray<readonly [string, ReadonlyArray<Picture>]> = [
    ["the first formats", samples.slice(0, 8)],
    ["the last formats", samples.slice(-8)]
  ]
  it.effect.each(lots)("shows eight of them, whatever their format: %s", function* ([, references]) {
    const { bytes } = yield* draw({ references, resolution: "2K" })
    for (const [red, green, blue] of middles(pixelsOf(bytes), 2)) {
      assert.isAbove(green, 130)
      assert.isAbove(green - Math.max(red, blue), 25)
    }
  })

  it.effect("shows grey as grey, and what is behind a transparent one", function* () {
    const references = [greyPng, transparentPng, ...samples.slice(0, 6)]
    const pixels = pixelsOf((yield* draw({ references })).bytes)
    const [grey, transparent] = middles(pixels, 1)
    for (const channel of [0, 1, 2]) assert.approximately(grey?.[channel] ?? 0, 171, 9)
    const beside = pixels.at(592 + 84 + 96, 72 + 91)
    for (const channel of [0, 1, 2]) assert.approximately(transparent?.[channel] ?? 0, beside[channel] ?? 0, 25)
  })

  it.effect("shows a photo upright", function* () {
    const pixels = pixelsOf((yield* draw({ references: [turnedJpeg] })).bytes)
    // 360 wide and 240 high.
    const [[leftRed, leftGreen], [rightRed, rightGreen]] = [pixels.at(600, 300), pixels.at(940, 80)]
    assert.isAbove(leftRed - leftGreen, 150)
    assert.isAbove(rightGreen - rightRed, 150)
  })
})

describe("a fault", () => {
  const failing: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox status=429]", "limit", 429],
    ["[sandbox status=401]", "account", 401],
    ["[sandbox status=400]", "request", 400],
    ["[sandbox status=503 moderation]", "retry", 503],
    ["[sandbox moderation]", "moderation", 400],
    ["[sandbox moderation fail]", "moderation", 400]
  ]
  it.effect.each(failing)("of %s is a failure of class %s with status %i", function* ([prompt, kind, status]) {
    const failure = yield* failureOf(draw({ prompt: `A fox ${prompt}` }))
    assert.deepStrictEqual([failure.class, failure.status], [kind, status])
  })

  it.effect("keeps to its routes", function* () {
    const prompt = "A fox [sandbox status=503 routes=1]"
    assert.strictEqual((yield* failureOf(draw({ prompt }))).status, 503)
    yield* draw({ prompt }, imageRoute("sandbox-b"))
  })

  it.effect("delays", function* () {
    const fiber = yield* Effect.fork(failureOf(draw({ prompt: "[sandbox delay=5000 status=500]" })))
    yield* TestClock.adjust(4_999)
    assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
    yield* TestClock.adjust(1)
    assert.strictEqual((yield* Fiber.join(fiber)).status, 500)
  })
})

describe("a reference that cannot be decoded", () => {
  const whole = Buffer.from(plain("#123456", 400, 300).bytes)
  /** Whole by its structure; its pixels are nonsense. */
  const damage = (bytes: Uint8Array, from: number) => Buffer.from(bytes).fill(0xaa, from, from + 12)
  const { GIF: gif, PNG: png, WebP: webp } = samplePictures
  const broken: Readonly<Record<string, Uint8Array>> = {
    "is empty": new Uint8Array(),
    "is text": Buffer.from("<html>not a picture</html>"),
    "is cut": whole.subarray(0, whole.length / 2),
    "has a header only": whole.subarray(0, 33),
    "has more pixels than it may": blank(7_100, 7_100),
    "is a PNG with broken pixels": damage(png.bytes, Buffer.from(png.bytes).indexOf("IDAT") + 4),
    "is a WebP with broken pixels": damage(webp.bytes, 30),
    "is a GIF with broken pixels": damage(gif.bytes, Buffer.from(gif.bytes).lastIndexOf(0x2c) + 12)
  }
  it.effect.each(Object.entries(broken))("because it %s is the request's fault", function* ([, bytes]) {
    const references: ReadonlyArray<Picture> = [plain("#ffffff"), { type: "image/png", bytes }]
    const failure = yield* failureOf(draw({ references }))
    assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
  })

  it.effect.each(Object.entries(largeFrames))(
    "because a frame is too large is refused before it takes memory: %s",
    function* ([, [bytes, size]]) {
      const failure = yield* failureOf(draw({ references: [{ type: "image/png", bytes }] }))
      assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
      const reason = size === undefined ? "is no whole picture" : "has more than 50000000 pixels"
      assert.strictEqual(failure.detail, `sandbox: a reference ${reason}`)
    }
  )

  it.effect("because it takes more than 1 GiB is the request's fault", function* () {
    const { bytes } = plain("#ffffff", 10, 10)
    const side = Math.ceil(Math.sqrt(2 ** 30 / 4)) + 1
    const failure = yield* failureOf(decodeReference(bytes, { width: side, height: side }, "pixels"))
    assert.deepStrictEqual([failure.class, failure.status], ["request", 400])
    assert.match(failure.detail, /cannot be decoded: unreachable/)
  })

  it.effect("within 10 seconds is the request's fault, and the next one has its turn", function* () {
    const { bytes } = plain("#ffffff", 7_000, 7_000)
    const room = { width: 1_000, height: 1_000 }
    const slow = yield* Effect.fork(failureOf(decodeReference(bytes, room, "pixels")))
    const limits = yield* EventLoop.yieldTurn.pipe(
      Effect.zipRight(TestClock.sleeps()),
      Effect.repeat({ until: Chunk.isNonEmpty })
    )
    const now = yield* Clock.currentTimeMillis
    assert.deepStrictEqual(Chunk.toReadonlyArray(limits), [now + 10_000])
    const next = yield* Effect.fork(decodeReference(plain("#ffffff").bytes, room, "pixels"))
    yield* TestClock.adjust("10 seconds")
    const failure = yield* Fiber.join(slow)
    assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
    assert.strictEqual(failure.detail, "sandbox: a reference takes too long to decode")
    assert.strictEqual((yield* Fiber.join(next)).width, 1_000)
  })
})

describe("a picture that is no longer wanted", () => {
  it.effect("is given up, drawn or waiting, and takes no turn of another", function* () {
    const reference = plain("#ffffff", 4_000, 4_000)
    const image = yield* imageOf
    const request = imageRequest({ resolution: "4K", references: [reference] })
    const asked = Array.from({ length: 8 }, () => image.generate(imageRoute(), request))
    const fibers = yield* Effect.forEach(asked, Effect.fork)
    yield* Effect.yieldNow()
    yield* Effect.forEach(fibers, Fiber.interrupt)
    yield* image.generate(imageRoute(), imageRequest())
  })
})
