import { Effect, Stream } from "effect"

/** Parts of exactly `size` bytes, except the last, share one buffer: nothing is pulled while one is in use. */
export const forEachPart = <E, E2, R, R2>(
  body: Stream.Stream<Uint8Array, E, R>,
  size: number,
  use: (part: Uint8Array, isLast: boolean) => Effect.Effect<void, E2, R2>
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    const memory = Buffer.allocUnsafeSlow(size)
    let filled = 0
    const take = (chunk: Uint8Array, from: number): Effect.Effect<void, E2, R2> => {
      if (from === chunk.length) return Effect.void
      if (filled === size) {
        return Effect.flatMap(use(memory, false), () => {
          filled = 0
          return take(chunk, from)
        })
      }
      const count = Math.min(size - filled, chunk.length - from)
      memory.set(chunk.subarray(from, from + count), filled)
      filled += count
      return take(chunk, from + count)
    }
    return Stream.runForEach(body, (chunk) => Effect.suspend(() => take(chunk, 0))).pipe(
      Effect.zipRight(Effect.suspend(() => use(memory.subarray(0, filled), true)))
    )
  })
