import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import sharp from "sharp"
import type { Picture } from "../../src/domain/Media.ts"
import type { Resolution } from "../../src/domain/Model.ts"
import { pixelsOf, plain, whiteIn } from "../harness/fixtures/PictureSamples.ts"
import { draw, imageRoute } from "../harness/gateway/SandboxMedia.ts"

/** Where the prompt stands in a picture of 1024 pixels, and beside references. */
const text = { x: 72, y: 72, width: 880, height: 800 }
const textBeside = { ...text, width: 480 }
const margins = [
  { x: 0, y: 0, width: 1024, height: 72 },
  { x: 0, y: 0, width: 72, height: 1024 },
  { x: 952, y: 0, width: 72, height: 1024 },
  { x: 0, y: 872, width: 1024, height: 152 }
]

const lettersOf = (prompt: string) =>
  Effect.gen(function* () {
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
  it.effect.each(sizes)("of %s is a whole PNG of %i pixels a side that shows its prompt", ([resolution, side]) =>
    Effect.gen(function* () {
      const { bytes, revisedPrompt } = yield* draw({ resolution })
      assert.isUndefined(revisedPrompt)
      const { format } = yield* Effect.promise(() => sharp(bytes).metadata())
      const pixels = yield* pixelsOf(bytes)
      assert.deepStrictEqual([format, pixels.width, pixels.height, pixels.channels], ["png", side, side, 3])
      const by = side / 1024
      const firstLine = { x: 72 * by, y: 72 * by, width: 880 * by, height: 110 * by }
      assert.isAbove(whiteIn(pixels, firstLine), 3_000 * by * by)
    })
  )

  it.effect("is the same for the same input, whichever route draws it, and no other's", () =>
    Effect.gen(function* () {
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
  )

  it.effect("has as many letters as its prompt", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* lettersOf(""), 0)
      assert.strictEqual(yield* lettersOf(" \n\t [sandbox delay=0] "), 0)
      const one = yield* lettersOf("n")
      assert.isAbove(one, 300)
      const ten = yield* lettersOf("nnnnn nnnnn")
      assert.approximately(ten / one, 10, 0.5)
    })
  )

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
  it.effect.each(Object.entries(prompts))("takes %s", ([, prompt]) =>
    Effect.gen(function* () {
      assert.isAbove(yield* lettersOf(prompt), 1_000)
    })
  )

  it.effect("wraps at spaces, and shrinks its letters only when they would not fit", () =>
    Effect.gen(function* () {
      const rowsOf = (prompt: string) =>
        Effect.gen(function* () {
          const pixels = yield* Effect.flatMap(draw({ prompt }), ({ bytes }) => pixelsOf(bytes))
          const written = Array.from({ length: 800 }, (_, y) => whiteIn(pixels, { ...text, y: 72 + y, height: 1 }) > 0)
          return written.filter((row, index) => row && written[index - 1] !== true).length
        })
      assert.strictEqual(yield* rowsOf("nnnn"), 1)
      assert.strictEqual(yield* rowsOf("nnnn\nnnnn\nnnnn"), 3)
      assert.strictEqual(yield* rowsOf("nnnnnnnnnn nnnnnnnnnn nnnnnnnnnn"), 3)
      assert.isAbove(yield* rowsOf("nnnnnnnnnn ".repeat(60)), 10)
    })
  )

  it.effect("leaves the event loop free while it is drawn", () =>
    Effect.gen(function* () {
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
  )
})

describe("an edit", () => {
  it.effect("shows its references beside the prompt", () =>
    Effect.gen(function* () {
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
  )

  it.effect("takes eight of them, of any format, small or transparent", () =>
    Effect.gen(function* () {
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
  )
})
