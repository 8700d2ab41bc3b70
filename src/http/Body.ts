import type { IncomingMessage } from "node:http"
import { Data, Effect } from "effect"
import { BodyTooLarge, type InsufficientCredits, InvalidRequest, type RateLimited } from "../domain/Failure.ts"
import * as EventLoop from "../services/EventLoop.ts"
import { smallBytes } from "./BodyRoom.ts"
import { refused } from "./Fields.ts"
import { parseBody } from "./JsonReader.ts"
import { type Part, parseForm } from "./Multipart.ts"

/** The connection ended before the body did; there is nobody left to answer. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

/** A request whose body is still to come, and where it finds room. */
export interface Incoming {
  readonly request: IncomingMessage
  readonly room: (bytes: number) => Effect.Effect<void, RateLimited | InsufficientCredits>
}

/** What has come of a body. */
interface Received {
  readonly chunks: Array<Buffer>
  bytes: number
}

/** Reads what is still coming and throws it away, else the answer would find the connection stuck. */
const discard = ({ request }: Incoming) => Effect.sync(() => request.resume())

/** Receives until a body's end, or until it is longer than so many bytes; says which. */
const receive = ({ request }: Incoming, received: Received, upTo: number) =>
  Effect.async<"whole" | "longer", BodyCutOff>((resume) => {
    const leave = () => {
      request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      request.on("error", () => {})
    }
    const done = (result: Effect.Effect<"whole" | "longer", BodyCutOff>) => {
      leave()
      resume(result)
    }
    const onData = (chunk: Buffer) => {
      received.chunks.push(chunk)
      received.bytes += chunk.length
      if (received.bytes <= upTo) return
      request.pause()
      done(Effect.succeed("longer"))
    }
    const onEnd = () => done(Effect.succeed("whole"))
    const onCut = () => done(Effect.fail(new BodyCutOff()))
    if (request.destroyed && !request.readableEnded) return onCut()
    request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut).resume()
    return Effect.sync(leave)
  })

/** Reads a body of at most `limitBytes`; of a longer one hardly more than that is received. */
const readBytes = Effect.fnUntraced(function* (incoming: Incoming, limitBytes: number) {
  const { request, room } = incoming
  const announced = Number(request.headers["content-length"])
  if (announced > limitBytes) return yield* new BodyTooLarge({ limitBytes })
  if (announced > smallBytes) yield* room(announced)
  const received: Received = { chunks: [], bytes: 0 }
  const unasked = announced > smallBytes ? limitBytes : Math.min(smallBytes, limitBytes)
  let came = yield* receive(incoming, received, unasked)
  // It did not say how long it would be.
  if (came === "longer" && received.bytes <= limitBytes) {
    yield* Effect.onError(room(limitBytes), () => discard(incoming))
    came = yield* receive(incoming, received, limitBytes)
  }
  if (came === "longer") {
    yield* discard(incoming)
    return yield* new BodyTooLarge({ limitBytes })
  }
  const [first] = received.chunks
  return received.chunks.length === 1 && first !== undefined ? first : Buffer.concat(received.chunks)
})

const isForm = (contentType: string): boolean =>
  /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(contentType)
const isMultipart = (contentType: string): boolean => /^\s*multipart\/form-data\b/i.test(contentType)

const typeOf = (request: IncomingMessage): string => request.headers["content-type"] ?? ""

/** Refused before it is received. */
const readPlain = Effect.fnUntraced(function* (incoming: Incoming, limitBytes: number) {
  const encoding = incoming.request.headers["content-encoding"] ?? "identity"
  if (encoding !== "identity") {
    return yield* new InvalidRequest({ message: "A compressed body is not accepted.", param: null })
  }
  return yield* readBytes(incoming, limitBytes)
})

/** A JSON body, whatever content type it was sent under, except forms; and how many bytes it had. */
export const readDocument = Effect.fnUntraced(function* (incoming: Incoming, limitBytes: number) {
  if (isForm(typeOf(incoming.request))) {
    return yield* new InvalidRequest({
      message: "The body must be JSON, sent as `Content-Type: application/json`, not a form.",
      param: null
    })
  }
  const body = yield* readPlain(incoming, limitBytes)
  return { value: yield* parseBody(body), bytes: body.length }
})

export const readJson = (incoming: Incoming, limitBytes: number) =>
  Effect.map(readDocument(incoming, limitBytes), ({ value }) => value)

export type Body =
  | { readonly _tag: "Json"; readonly value: unknown }
  | { readonly _tag: "Form"; readonly parts: ReadonlyArray<Part> }

const largeForm = 256 * 1024

/** A `multipart/form-data` body, or a JSON one as `readJson` takes it. */
export const readJsonOrForm = Effect.fnUntraced(function* (incoming: Incoming, limitBytes: number) {
  const contentType = typeOf(incoming.request)
  if (!isMultipart(contentType)) return { _tag: "Json", value: yield* readJson(incoming, limitBytes) } satisfies Body
  const body = yield* readPlain(incoming, limitBytes)
  const parts = yield* EventLoop.run(parseForm(contentType, body), body.length > largeForm)
  return refused(parts) ? yield* parts : ({ _tag: "Form", parts } satisfies Body)
})
