import { Effect, Fiber, Option, TestClock } from "effect"
import * as Pictures from "../../../src/services/media/Pictures.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { configurationOf, decoder, type Frame } from "./Avc.ts"
import { contentOf, parse } from "./Mp4.ts"
import { blank, plain } from "./PictureSamples.ts"
import { download, failureOf, poll, submit, videoRoute } from "./SandboxMedia.ts"

const rendered = Effect.fnUntraced(function* (overrides: Parameters<typeof submit>[0], route = videoRoute()) {
  const handle = yield* submit(overrides, route)
  yield* TestClock.adjust("3 seconds")
  return yield* download(handle)
})

const decoded = (bytes: Buffer): ReadonlyArray<Frame> => {
  const decode = decoder(configurationOf(contentOf(bytes, "avcC")))
  return parse(bytes).samples.map(({ offset, size }) => decode(bytes.subarray(offset, offset + size)))
}

const lumaAt = ({ blocks }: Frame, x: number, y: number): number =>
  blocks[Math.floor(y / 16) * 40 + Math.floor(x / 16)]?.[(y % 16) * 16 + (x % 16)] ?? -1

describe("a clip", () => {
  it.effect.each([1, 5, 15, 61])(
    "of %i seconds is an mp4 of just that, made to be played while it arrives",
    function* (seconds) {
      const { bytes } = yield* rendered({ seconds })
      assert.isTrue(yield* Pictures.isVideo(bytes.subarray(0, 4_096)))
      assert.isBelow(bytes.length, 450_000 + seconds * 40_000)

      const { boxes, movie, samples } = parse(bytes)
      assert.deepStrictEqual(
        boxes.map(({ type }) => type),
        ["ftyp", "moov", "mdat"]
      )
      assert.deepStrictEqual(movie.brands, ["isom", "isom", "iso2", "avc1", "mp41"])
      assert.deepStrictEqual([movie.isFragmented, movie.isProgressive], [false, true])
      assert.strictEqual(movie.duration, seconds * movie.timescale)
      const [track] = movie.videoTracks
      assert.isDefined(track)
      assert.strictEqual(track.codec, "avc1.42c01e")
      assert.strictEqual(track.duration, seconds * track.timescale)
      assert.deepStrictEqual(track.video, { width: 640, height: 360 })

      const [media] = boxes.slice(-1)
      assert.strictEqual(media?.end, bytes.length)
      let [at, time] = [(media?.start ?? 0) + 8, 0]
      for (const [index, { cts, dts, duration, is_sync, offset, size, timescale }] of samples.entries()) {
        assert.deepStrictEqual([offset, dts, cts], [at, time, time])
        assert.strictEqual(is_sync, index === 0)
        assert.strictEqual(duration * samples.length, seconds * timescale)
        at += size
        time += duration
      }
      assert.strictEqual(at, bytes.length, "every sample is in mdat, and nothing else is")
    }
  )

  it.effect("is H.264 that any decoder takes, of the size that the track says", function* () {
    const { bytes } = yield* rendered({ seconds: 1 })
    assert.deepStrictEqual(configurationOf(contentOf(bytes, "avcC")), {
      profile: 66,
      constraints: 0b11000000,
      level: 30,
      columns: 40,
      rows: 23,
      width: 640,
      height: 360
    })
    const samples = decoded(bytes).flatMap(({ blocks }) => blocks)
    assert.isTrue(samples.every((block) => block.every((value) => value >= 16 && value <= 240)))
  })

  it.effect("shows the same picture in every frame", function* () {
    const { bytes } = yield* rendered({ seconds: 31 })
    const frames = decoded(bytes)
    frames.forEach(({ blocks, coded, key }, index) => {
      assert.deepStrictEqual([key, coded.length], index === 0 ? [true, 40 * 23] : [false, 0])
      assert.strictEqual(blocks.length, 40 * 23)
    })
  })

  it.effect("shows its prompt, and below it what it was made from", function* () {
    const first = (overrides: Parameters<typeof submit>[0]) =>
      Effect.map(rendered({ seconds: 1, ...overrides }), ({ bytes }) => decoded(bytes)[0] ?? assert.fail("no frame"))
    const inked = (frame: Frame, top: number, bottom: number) => {
      let count = 0
      for (let y = top; y < bottom; y++) for (let x = 25; x < 615; x++) if (lumaAt(frame, x, y) > 230) count++
      return count
    }
    const silent = yield* first({ prompt: "" })
    assert.strictEqual(inked(silent, 25, 245), 0)
    assert.isAbove(inked(silent, 295, 335), 300)
    assert.isAbove(inked(yield* first({ prompt: "A red fox" }), 25, 245), 500)
    const made = yield* first({ prompt: "", reference: plain("#ff0000", 3_000, 3_000) })
    assert.strictEqual(inked(made, 25, 245), 0)
    assert.isAbove(inked(made, 295, 335), inked(silent, 295, 335) + 100)
  })

  it.effect("has the same bytes for the same input only, whenever and wherever it is rendered", function* () {
    const chatRequest = { seconds: 1, reference: plain("#00ff00") }
    const { bytes } = yield* rendered(chatRequest)
    yield* TestClock.adjust("1 day")
    assert.isTrue(bytes.equals((yield* rendered(chatRequest, videoRoute("sandbox-b"))).bytes))
    assert.isTrue(bytes.equals((yield* rendered({ ...chatRequest, prompt: "[sandbox delay=0] A red fox" })).bytes))
    for (const other of [{ prompt: "A red fax" }, { seconds: 5 }, { reference: undefined }]) {
      assert.isFalse(bytes.equals((yield* rendered({ ...chatRequest, ...other })).bytes))
    }
  })
})

const states = (handle: string, moments: ReadonlyArray<number>) =>
  Effect.forEach(moments, (until, index) =>
    Effect.zipRight(TestClock.adjust(until - (moments[index - 1] ?? 0)), poll(handle))
  )

describe("a render", () => {
  it.effect("is queued for a second, in progress until the third, and done from then on", function* () {
    yield* TestClock.adjust("400 days")
    const handle = yield* submit({})
    const seen = yield* states(handle, [0, 999, 1_000, 2_999, 3_000, 86_400_000])
    assert.deepStrictEqual(
      seen.map(({ state }) => state),
      ["queued", "queued", "in_progress", "in_progress", "done", "done"]
    )
  })

  const fates: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox fail]", "retry", 500],
    ["[sandbox fail moderation]", "moderation", 400],
    ["[sandbox moderation fail delay=0]", "moderation", 400],
    ["[sandbox fail routes=1]", "retry", 500]
  ]
  it.effect.each(fates)("with %s fails in its third second, as %s", function* ([prompt, kind, status]) {
    const handle = yield* submit({ prompt: `A fox ${prompt}` })
    const seen = yield* states(handle, [999, 1_999, 2_000, 3_000, 60_000])
    assert.deepStrictEqual(
      seen.map((progress) =>
        progress.state === "failed" ? [progress.failure.class, progress.failure.status] : progress.state
      ),
      ["queued", "in_progress", [kind, status], [kind, status], [kind, status]]
    )
  })

  it.effect("fails only on the routes that were named", function* () {
    const handle = yield* submit({ prompt: "[sandbox fail routes=1]" }, videoRoute("sandbox-b"))
    assert.deepStrictEqual(yield* states(handle, [3_000]), [{ state: "done" }])
  })
})

describe("a submit", () => {
  const refused: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox status=503]", "retry", 503],
    ["[sandbox status=429 fail]", "limit", 429],
    ["[sandbox moderation]", "moderation", 400],
    ["[sandbox fail] [sandbox moderation]", "moderation", 400],
    ["[sandbox status=422 routes=1]", "request", 422]
  ]
  it.effect.each(refused)("with %s is refused as %s", function* ([prompt, kind, status]) {
    const failure = yield* failureOf(submit({ prompt: `A fox ${prompt}` }))
    assert.deepStrictEqual([failure.class, failure.status], [kind, status])
  })

  it.effect("waits out a delay, and the render begins after it", function* () {
    const fiber = yield* Effect.fork(submit({ prompt: "[sandbox delay=5000]" }))
    yield* TestClock.adjust(4_999)
    assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
    yield* TestClock.adjust(1)
    const handle = yield* Fiber.join(fiber)
    assert.deepStrictEqual(yield* states(handle, [999, 1_000]), [
      { state: "queued" },
      { state: "in_progress", percent: 33 }
    ])
  })

  it.effect("refuses a reference that is no whole picture", function* () {
    for (const bytes of [Buffer.from("<html>"), blank(50, 50).subarray(0, 45)]) {
      const failure = yield* failureOf(submit({ reference: { type: "image/png", bytes } }))
      assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
    }
  })
})

describe("a handle", () => {
  it.effect("is small text that any database takes, whatever was asked for", function* () {
    const reference = plain("#abcdef", 4_000, 3_000)
    const handle = yield* submit({ prompt: `\u0000 \ud800 "\n${"long ".repeat(100_000)}`, reference })
    assert.isBelow(handle.length, 32_768)
    assert.notMatch(handle, /\\u0000|\\ud800/)
    yield* TestClock.adjust("3 seconds")
    yield* download(handle)
  })

  it.effect("that is broken is refused as an unknown render", function* () {
    const handle = yield* submit({ seconds: 5 })
    yield* TestClock.adjust("3 seconds")
    const changed = (from: string, to: string) => handle.replace(from, to)
    const strange = [
      "",
      "null",
      "{}",
      "[".repeat(100_000),
      changed(`"seconds":5`, `"seconds":1e9`),
      changed(`"seconds":5`, `"seconds":0`),
      changed(`"done"`, `"lost"`),
      changed(`"reference":null`, `"reference":1`)
    ]
    for (const text of strange) {
      for (const chatRequest of [Effect.asVoid(poll(text)), Effect.asVoid(download(text))]) {
        const failure = yield* failureOf(chatRequest)
        assert.deepStrictEqual([failure.class, failure.status], ["retry", 404])
      }
    }
  })
})
