import type { IncomingMessage } from "node:http"
import { Data, Effect } from "effect"
import { BodyTooLarge, InvalidRequest } from "../domain/Failure.ts"
import * as EventLoop from "../services/EventLoop.ts"
import { refused } from "./Fields.ts"
import { type Part, readForm } from "./Multipart.ts"

/** The connection ended before the body did; there is nobody left to answer. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

/** Reads a body of at most `limitBytes`; of a longer one no more than that is kept. */
const readBytes = (request: IncomingMessage, limitBytes: number): Effect.Effect<Buffer, BodyTooLarge | BodyCutOff> =>
  Effect.async((resume) => {
    const tooLarge = () => Effect.fail(new BodyTooLarge({ limitBytes }))
    if (Number(request.headers["content-length"] ?? 0) > limitBytes) return resume(tooLarge())
    const chunks: Array<Buffer> = []
    let size = 0
    const done = (result: Effect.Effect<Buffer, BodyTooLarge | BodyCutOff>) => {
      request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      // What is still coming is read and thrown away by Node once the answer is out.
      request.on("error", () => {})
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      size += chunk.length
      if (size > limitBytes) return done(tooLarge())
      chunks.push(chunk)
    }
    const onEnd = () =>
      done(Effect.succeed(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)))
    const onCut = () => done(Effect.fail(new BodyCutOff()))
    if (request.destroyed && !request.readableEnded) return onCut()
    request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut)
  })

const isForm = (contentType: string): boolean =>
  /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(contentType)
const isMultipart = (contentType: string): boolean => /^\s*multipart\/form-data\b/i.test(contentType)

const typeOf = (request: IncomingMessage): string => request.headers["content-type"] ?? ""

/** Refused before it is received. */
const readPlain = Effect.fnUntraced(function* (request: IncomingMessage, limitBytes: number) {
  const encoding = request.headers["content-encoding"] ?? "identity"
  if (encoding !== "identity") {
    return yield* new InvalidRequest({ message: "A compressed body is not accepted.", param: null })
  }
  return yield* readBytes(request, limitBytes)
})

/** Each step of reading a body larger than this takes a while: in between others get their turn. */
const largeBytes = 1024 * 1024

/** A JSON body, whatever content type it was sent under, except forms. */
export const readJson = Effect.fnUntraced(function* (request: IncomingMessage, limitBytes: number) {
  if (isForm(typeOf(request))) {
    return yield* new InvalidRequest({
      message: "The body must be JSON, sent as `Content-Type: application/json`, not a form.",
      param: null
    })
  }
  const bytes = yield* readPlain(request, limitBytes)
  const breath = bytes.length > largeBytes ? EventLoop.turn : Effect.void
  yield* breath
  const text = bytes.toString("utf8")
  yield* breath
  const value = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () => new InvalidRequest({ message: "The body is not valid JSON.", param: null })
  })
  yield* breath
  return value
})

export type Body =
  | { readonly _tag: "Json"; readonly value: unknown }
  | { readonly _tag: "Form"; readonly parts: ReadonlyArray<Part> }

/** A `multipart/form-data` body, or a JSON one as `readJson` takes it. */
export const readJsonOrForm = Effect.fnUntraced(function* (request: IncomingMessage, limitBytes: number) {
  const contentType = typeOf(request)
  if (!isMultipart(contentType)) return { _tag: "Json", value: yield* readJson(request, limitBytes) } satisfies Body
  const parts = readForm(contentType, yield* readPlain(request, limitBytes))
  return refused(parts) ? yield* parts : ({ _tag: "Form", parts } satisfies Body)
})
