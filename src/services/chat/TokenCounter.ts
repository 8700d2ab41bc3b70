import { Context, Effect, Layer } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { imagesIn, promptTexts } from "../../domain/Pricing.ts"
import * as EventLoop from "../runtime/EventLoop.ts"

const perMessage = 4
/** For the part of a prompt that only a native body holds, whose bound is in bytes. */
const bytesPerToken = 4
/** The tokenizer is quadratic on unbroken runs of letters. */
const longestSlice = 512
/** Some milliseconds of hard text. */
const stepLength = 8_192
/** Only longer texts yield between steps. */
const stepsAtOnce = 4
/** The tokenizer's default cache could grow to hundreds of megabytes of customers' text. */
const rememberedPieces = 8_192

const space = 0x20
const isBlank = (unit: number): boolean => unit === space || (unit >= 0x09 && unit <= 0x0d)

/** Before the last single space if there is one, because no token would cross it. */
const sliceEnd = (text: string, start: number): number => {
  const end = start + longestSlice
  if (end >= text.length) return text.length
  for (let at = end; at > start + longestSlice / 2; at--) {
    if (
      text.charCodeAt(at) === space &&
      !isBlank(text.charCodeAt(at - 1)) &&
      at + 1 < text.length &&
      !isBlank(text.charCodeAt(at + 1))
    ) {
      return at
    }
  }
  const splitsPair = (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(end) & 0xfc00) === 0xdc00
  return splitsPair ? end - 1 : end
}

type CountSlice = (slice: string) => number

function* countTexts(texts: Iterable<string>, countSlice: CountSlice): EventLoop.Steps<number> {
  let total = 0
  let counted = 0
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = sliceEnd(text, start)
      total += countSlice(text.slice(start, end))
      counted += end - start
      start = end
      if (counted < stepLength) continue
      counted = 0
      yield
    }
  }
  return total
}

const load: Effect.Effect<CountSlice> = Effect.promise(() => import("gpt-tokenizer/encoding/o200k_base")).pipe(
  Effect.map(({ countTokens, setMergeCacheSize }) => {
    setMergeCacheSize(rememberedPieces)
    const plain = { disallowedSpecial: new Set<string>() }
    return (slice) => countTokens(slice, plain)
  })
)

/** The vocabulary (o200k, some 60 MB) is loaded by the first count. */
export class TokenCounter extends Context.Tag("gateway/TokenCounter")<
  TokenCounter,
  {
    /** At most one per UTF-8 byte. */
    readonly count: (text: string) => Effect.Effect<number>
    /** `imageTokens` for each image part. */
    readonly prompt: (request: ChatRequest, imageTokens: number) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.effect(
    TokenCounter,
    Effect.sync(() => {
      // Not Effect.cached: it keeps the interruption of a first caller who left, for everyone after it.
      let loaded: CountSlice | undefined

      const countAll = Effect.fnUntraced(function* (texts: Iterable<string>) {
        loaded ??= yield* load
        const steps = countTexts(texts, loaded)
        for (let step = 0; step < stepsAtOnce; step++) {
          const result = steps.next()
          if (result.done === true) return result.value
        }
        return yield* EventLoop.runInSlices(steps)
      })

      return TokenCounter.of({
        count: (text) => (text === "" ? Effect.succeed(0) : countAll([text])),
        prompt: Effect.fnUntraced(function* (request, imageTokens) {
          const images = request.messages.reduce((sum, message) => sum + imagesIn(message), 0)
          const text = yield* countAll(promptTexts(request))
          const bound = request.native?.extraTokens ?? 0
          const extra = Number.isFinite(bound) ? Math.ceil(bound / bytesPerToken) : 0
          return text + perMessage * request.messages.length + imageTokens * images + extra
        })
      })
    })
  )
}
