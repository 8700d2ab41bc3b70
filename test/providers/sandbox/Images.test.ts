import { Effect, Fiber, Option, TestClock } from "effect"
import sharp from "sharp"
import type { Picture } from "../../../src/domain/Media.ts"
import type { Resolution, Shape } from "../../../src/domain/Model.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { blank, pixelsOf, plain, whiteIn } from "./PictureSamples.ts"
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
  const pixels = yield* Effect.flatMap(draw({ prompt }), ({ bytes }) => pixelsOf(bytes))
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
      const { format } = yield* Effect.promise(() => sharp(bytes).metadata())
      const pixels = yield* pixelsOf(bytes)
      assert.deepStrictEqual([format, pixels.width, pixels.height, pixels.channels], ["png", side, side, 3])
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
      const { bytes } = yield* draw({ shape, resolution, references: [yield* plain("#ff0000")] })
      const pixels = yield* pixelsOf(bytes)
      assert.deepStrictEqual([pixels.width, pixels.height], [width, height])
      assert.isAbove(whiteIn(pixels, { x: 0, y: 0, width, height }), 500)
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
      const pixels = yield* Effect.flatMap(draw({ prompt }), ({ bytes }) => pixelsOf(bytes))
      const written = Array.from({ length: 800 }, (_, y) => whiteIn(pixels, { ...text, y: 72 + y, height: 1 }) > 0)
      return written.filter((row, index) => row && written[index - 1] !== true).length
    })
    assert.strictEqual(yield* rowsOf("nnnn"), 1)
    assert.strictEqual(yield* rowsOf("nnnn\nnnnn\nnnnn"), 3)
    assert.strictEqual(yield* rowsOf("nnnnnnnnnn nnnnnnnnnn nnnnnnnnnn"), 3)
    assert.isAbove(yield* rowsOf("nnnnnnnnnn ".repeat(60)), 10)
  })

  it.effect("leaves the event loop free while it is drawn", function* () {
    let turns = 0
    let going = true
    const turn = () => {
      turns++
      if (going) setImmediate(turn)
    }
    yield* draw({})
    turn()
    yield* draw({ resolution: "4K" })
    going = false
    assert.isAbove(turns, 100)
  })
})

describe("an edit", () => {
  it.effect("shows its references beside the prompt", function* () {
    const [red, blue] = [yield* plain("#ff0000"), yield* plain("#0000ff", 100, 300)]
    const { bytes } = yield* draw({ references: [red, blue] })
    const pixels = yield* pixelsOf(bytes)
    assert.isAbove(whiteIn(pixels, textBeside), 3_000)
    // The left column of a place 360 wide and 388 high, and the one below it.
    assert.deepStrictEqual(pixels.at(770, 80), [255, 0, 0])
    assert.deepStrictEqual(pixels.at(770, 600), [0, 0, 255])
    const { bytes: swapped } = yield* draw({ references: [blue, red] })
    assert.deepStrictEqual((yield* pixelsOf(swapped)).at(770, 80), [0, 0, 255])
  })

  it.effect("takes eight of them, of any format, small or transparent", function* () {
    const { bytes } = yield* plain("#00ff00", 3, 2)
    const picture = sharp(bytes)
    const encodings = [
      ["image/jpeg", picture.clone().jpeg()],
      ["image/webp", picture.clone().webp()],
      ["image/gif", picture.clone().gif()],
      ["image/png", picture.clone().ensureAlpha(0).png()],
      ["image/png", picture.clone().toColourspace("b-w").png()],
      ["image/png", picture.clone().toColourspace("rgb16").png()],
      ["image/jpeg", picture.clone().toColourspace("cmyk").jpeg()],
      ["image/jpeg", picture.clone().withMetadata({ orientation: 6 }).jpeg()]
    ] as const
    const references: ReadonlyArray<Picture> = yield* Effect.forEach(encodings, ([type, encoding]) =>
      Effect.map(
        Effect.promise(() => encoding.toBuffer()),
        (encoded) => ({ type, bytes: encoded })
      )
    )
    const drawn = yield* draw({ references, resolution: "2K" })
    const pixels = yield* pixelsOf(drawn.bytes)
    assert.deepStrictEqual([pixels.width, pixels.height, pixels.channels], [2048, 2048, 3])
    const [, green] = pixels.at(2 * 600, 2 * 80)
    assert.isAbove(green, 240)
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
  const whole = Effect.map(plain("#123456", 400, 300), ({ bytes }) => Buffer.from(bytes))
  const huge = Effect.sync(() => blank(10_100, 10_000))
  const broken: Readonly<Record<string, Effect.Effect<Uint8Array>>> = {
    "is empty": Effect.succeed(new Uint8Array()),
    "is text": Effect.succeed(Buffer.from("<html>not a picture</html>")),
    "is cut": Effect.map(whole, (bytes) => bytes.subarray(0, bytes.length / 2)),
    "has a header only": Effect.map(whole, (bytes) => bytes.subarray(0, 33)),
    "has more pixels than any camera": huge
  }
  it.effect.each(Object.entries(broken))("because it %s is the request's fault", function* ([, made]) {
    const reference: Picture = { type: "image/png", bytes: yield* made }
    const failure = yield* failureOf(draw({ references: [yield* plain("#fff"), reference] }))
    assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
  })
})

describe("a picture that is no longer wanted", () => {
  it.effect("is given up, drawn or waiting, and takes no turn of another", function* () {
    const reference = yield* plain("#fff", 4_000, 4_000)
    const image = yield* imageOf
    const request = imageRequest({ resolution: "4K", references: [reference] })
    const asked = Array.from({ length: 8 }, () => image.generate(imageRoute(), request))
    const fibers = yield* Effect.forEach(asked, Effect.fork)
    yield* Effect.yieldNow()
    yield* Effect.forEach(fibers, Fiber.interrupt)
    yield* image.generate(imageRoute(), imageRequest())
  })
})
