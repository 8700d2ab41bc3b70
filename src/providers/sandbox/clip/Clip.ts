import { Effect, Option, Stream } from "effect"
import * as EventLoop from "../../../services/runtime/EventLoop.ts"
import { configuration, keyFrame, macroblock, nextFrame } from "./Avc.ts"
import { head } from "./Mp4.ts"
import { digit, grid, height, type Painting, width } from "./Painting.ts"
import { withBand } from "./Planes.ts"

const framesPerSecond = 24
/** Between frames that need no other; most clips are shorter. */
const keySeconds = 30

/** The last row of whole macroblocks, and the rows of pixels in it that show how much of the clip is over. */
const barRow = 21
const barPixels = [4, 12] as const
/** The counter's first row of macroblocks, and the column before which it ends. */
const counter = { row: 15, end: 38 }

/** A second's frames are made when they are asked for, twice: once for their sizes, which come first in the file. */
const framesOf = (painting: Painting, seconds: number) => {
  const frames = seconds * framesPerSecond
  const places = String(seconds).length
  const counterAt = counter.end - places * digit.columns
  const bars = new Map<string, Uint8Array>()

  const shown = (frame: number): string => String(Math.floor(frame / framesPerSecond) + 1).padStart(places, "0")
  const filled = (frame: number): number => Math.floor(((frame + 1) * width) / frames)

  const bar = (column: number, frame: number): Uint8Array => {
    const part = Math.min(macroblock, Math.max(0, filled(frame) - column * macroblock))
    const key = `${column} ${part}`
    const found = bars.get(key) ?? withBand(painting.base(barRow * grid.columns + column), barPixels, part)
    bars.set(key, found)
    return found
  }

  const blocks = (frame: number) => (at: number) => {
    const [row, column] = [Math.floor(at / grid.columns), at % grid.columns]
    if (row === barRow) return bar(column, frame)
    const [down, right] = [row - counter.row, column - counterAt]
    if (down < 0 || down >= digit.rows || right < 0 || right >= places * digit.columns) return painting.base(at)
    const value = Number(shown(frame)[Math.floor(right / digit.columns)] ?? 0)
    return painting.digit(value, down * digit.columns + (right % digit.columns))
  }

  /** What is not as it was in the frame before. */
  const changed = (frame: number): ReadonlyArray<number> => {
    const [before, now] = [shown(frame - 1), shown(frame)]
    const digits = Array.from({ length: before === now ? 0 : digit.rows * digit.columns * places }, (_, index) => {
      const right = index % (places * digit.columns)
      const place = Math.floor(right / digit.columns)
      const at = (counter.row + Math.floor(index / (places * digit.columns))) * grid.columns + counterAt + right
      return before[place] === now[place] ? [] : [at]
    })
    const [from, to] = [filled(frame - 1), filled(frame)]
    const [first, last] = [Math.floor(from / macroblock), Math.floor((to - 1) / macroblock)]
    const grown = Array.from({ length: to > from ? last - first + 1 : 0 }, (_, index) => [
      barRow * grid.columns + first + index
    ])
    return [...digits, ...grown].flat()
  }

  const keyEvery = keySeconds * framesPerSecond
  return (second: number): ReadonlyArray<Buffer> =>
    Array.from({ length: framesPerSecond }, (_, index) => {
      const frame = second * framesPerSecond + index
      if (frame % keyEvery === 0) return keyFrame(grid, frame / keyEvery, blocks(frame))
      return nextFrame(grid, frame % keyEvery, changed(frame), blocks(frame))
    })
}

/** An MP4 file of so many seconds, a second of it in memory at a time. */
export const clip = (painting: Painting, seconds: number): Stream.Stream<Uint8Array> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const frames = framesOf(painting, seconds)
      const sizes: Array<number> = []
      for (let second = 0; second < seconds; second++) {
        sizes.push(...frames(second).map((frame) => frame.length))
        yield* EventLoop.turn
      }
      const keyFrames = Array.from(
        { length: Math.ceil(seconds / keySeconds) },
        (_, index) => index * keySeconds * framesPerSecond
      )
      const start = head({ width, height, framesPerSecond, configuration: configuration(grid), sizes, keyFrames })
      const rest = Stream.unfoldEffect(0, (second) =>
        Effect.as(
          EventLoop.turn,
          second < seconds ? Option.some([Buffer.concat(frames(second)), second + 1] as const) : Option.none()
        )
      )
      return Stream.concat(Stream.succeed(start), rest)
    })
  )
