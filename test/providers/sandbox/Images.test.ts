import { Effect, Fiber, Option, TestClock } from "effect"
import type { Picture } from "../../../src/domain/Media.ts"
import type { Resolution, Shape } from "../../../src/domain/Model.ts"
import { pictureOf } from "../../../src/services/media/Pictures.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { samplePictures } from "../../harness/fixtures/SamplePictures.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { pixelsOf, plain, whiteIn } from "./PictureSamples.ts"
import { draw, failureOf, imageRoute } from "./SandboxMedia.ts"

/** The areas of the prompt and the note in an image of 1024 pixels. */
const text = { x: 73, y: 73, width: 878, height: 692 }
const note = { x: 73, y: 838, width: 878, height: 113 }
const margins = [
  { x: 0, y: 0, width: 1024, height: 73 },
  { x: 0, y: 0, width: 73, height: 1024 },
  { x: 951, y: 0, width: 73, height: 1024 },
  { x: 0, y: 765, width: 1024, height: 73 },
  { x: 0, y: 951, width: 1024, height: 73 }
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
      const written = Array.from({ length: 692 }, (_, y) => whiteIn(pixels, { ...text, y: 73 + y, height: 1 }) > 0)
      return written.filter((row, index) => row && written[index - 1] !== true).length
    })
    assert.strictEqual(yield* rowsOf("nnnn"), 1)
    assert.strictEqual(yield* rowsOf("nnnn\nnnnn\nnnnn"), 3)
    assert.strictEqual(yield* rowsOf("nnnnnnnnnn nnnnnnnnnn nnnnnnnnnn"), 3)
    assert.isAbove(yield* rowsOf("nnnnnnnnnn ".repeat(60)), 10)
  })
})

describe("an edit", () => {
  it.effect("differs with its references and their order, and says how many they are", function* () {
    const [red, blue] = [plain("#ff0000"), plain("#0000ff")]
    const lots = [[], [red], [blue], [red, blue], [blue, red], Object.values(samplePictures).slice(0, 8)]
    const pictures = yield* Effect.forEach(lots, (references) => draw({ references }))
    const hexes = pictures.map(({ bytes }) => Buffer.from(bytes).toString("hex"))
    assert.strictEqual(new Set(hexes).size, lots.length)
    const inks = pictures.map(({ bytes }) => whiteIn(pixelsOf(bytes), note))
    for (const ink of inks) assert.isAbove(ink, 300)
    const prompts = pictures.map(({ bytes }) => whiteIn(pixelsOf(bytes), text))
    assert.strictEqual(new Set(prompts).size, 1, "the prompt is drawn in the same way")
  })

  it.effect.each(Object.entries(samplePictures))("takes a reference of any format: %s", function* ([, reference]) {
    const { bytes } = yield* draw({ references: [reference] })
    assert.isTrue(Buffer.from(bytes).equals((yield* draw({ references: [reference] })).bytes))
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

describe("a reference that is no whole picture", () => {
  const whole = Buffer.from(plain("#123456", 400, 300).bytes)
  const broken: Readonly<Record<string, Uint8Array>> = {
    "is empty": new Uint8Array(),
    "is text": Buffer.from("<html>not a picture</html>"),
    "is cut": whole.subarray(0, whole.length / 2),
    "has a header only": whole.subarray(0, 33)
  }
  it.effect.each(Object.entries(broken))("because it %s is the request's fault", function* ([, bytes]) {
    const references: ReadonlyArray<Picture> = [plain("#ffffff"), { type: "image/png", bytes }]
    const failure = yield* failureOf(draw({ references }))
    assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
  })
})
