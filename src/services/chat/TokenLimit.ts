import { Effect } from "effect"
import type { TokenCounter } from "./TokenCounter.ts"

type Count = typeof TokenCounter.Service.count

interface Piece {
  readonly text: string
  readonly tokens: number
  readonly whole: boolean
}

export const cutTo = Effect.fnUntraced(function* (count: Count, text: string, limit: number) {
  const all = yield* count(text)
  if (all <= limit) return { text, tokens: all, whole: true }
  let best: Piece = { text: "", tokens: 0, whole: false }
  let [low, high] = [0, text.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const splitsPair = (text.charCodeAt(middle - 1) & 0xfc00) === 0xd800
    const start = text.slice(0, splitsPair ? middle - 1 : middle)
    const tokens = yield* count(start)
    if (tokens > limit) high = middle - 1
    else {
      low = middle
      best = { text: start, tokens, whole: false }
    }
  }
  return best
})
