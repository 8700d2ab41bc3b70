import { Context, Effect, Layer } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { countImages, promptTexts } from "../../domain/Pricing.ts"
import * as EventLoop from "../runtime/EventLoop.ts"

const tokensPerMessage = 4
/** Estimates the tokens of prompt parts that exist only in a native body, from their size in bytes. */
const bytesPerToken = 4
/** In characters. Slices are short, because the tokenizer takes quadratic time on unbroken runs of letters. */
const maxSliceLength = 512
/** In characters. A step of text that is slow to count takes a few milliseconds. */
const stepLength = 8_192
/** Only texts with more steps yield between them. */
const maxUninterruptedSteps = 4
/** The tokenizer's default cache could grow to hundreds of megabytes of customers' text. */
const maxCachedPieces = 8_192

const space = 0x20
const isBlank = (unit: number): boolean => unit === space || (unit >= 0x09 && unit <= 0x0d)

/** Returns the end of a slice, if possible before a single space, because no token crosses it. */
const sliceEnd = (text: string, start: number): number => {
  const end = start + maxSliceLength
  if (end >= text.length) return text.length
  for (let at = end; at > start + maxSliceLength / 2; at--) {
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
  let sliceLength = 0
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = sliceEnd(text, start)
      total += countSlice(text.slice(start, end))
      sliceLength += end - start
      start = end
      if (sliceLength < stepLength) continue
      sliceLength = 0
      yield
    }
  }
  return total
}

const loadTokenizer: Effect.Effect<CountSlice> = Effect.promise(() => import("gpt-tokenizer/encoding/o200k_base")).pipe(
  Effect.map(({ countTokens, setMergeCacheSize }) => {
    setMergeCacheSize(maxCachedPieces)
    const options = { disallowedSpecial: new Set<string>() }
    return (slice) => countTokens(slice, options)
  })
)

/** The first count loads the vocabulary (o200k, about 60 MB). */
export class TokenCounter extends Context.Tag("gateway/TokenCounter")<
  TokenCounter,
  {
    /** Returns at most one token per UTF-8 byte. */
    readonly count: (text: string) => Effect.Effect<number>
    /** Returns the tokens of a prompt, with `imageTokens` for each image part. */
    readonly prompt: (request: ChatRequest, imageTokens: number) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.effect(
    TokenCounter,
    Effect.sync(() => {
      // Not Effect.cached, which would keep the interruption of the first caller.
      let countSlice: CountSlice | undefined

      const countAll = Effect.fnUntraced(function* (texts: Iterable<string>) {
        countSlice ??= yield* loadTokenizer
        const steps = countTexts(texts, countSlice)
        for (let step = 0; step < maxUninterruptedSteps; step++) {
          const result = steps.next()
          if (result.done === true) return result.value
        }
        return yield* EventLoop.runInSlices(steps)
      })

      return TokenCounter.of({
        count: (text) => (text === "" ? Effect.succeed(0) : countAll([text])),
        prompt: Effect.fnUntraced(function* (request, imageTokens) {
          const imageCount = request.messages.reduce((sum, message) => sum + countImages(message), 0)
          const textTokens = yield* countAll(promptTexts(request))
          const extraBytes = request.native?.extraTokens ?? 0
          const extraTokens = Number.isFinite(extraBytes) ? Math.ceil(extraBytes / bytesPerToken) : 0
          return textTokens + tokensPerMessage * request.messages.length + imageTokens * imageCount + extraTokens
        })
      })
    })
  )
}
