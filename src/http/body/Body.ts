import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import type { Incoming, ReceiveFailure } from "./BodyReceiver.ts"
import { refused } from "./Fields.ts"
import { parseBody } from "./JsonReader.ts"
import { type Part, parseForm } from "./Multipart.ts"

const isForm = (contentType: string): boolean =>
  /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(contentType)
const isMultipart = (contentType: string): boolean => /^\s*multipart\/form-data\b/i.test(contentType)

const typeOf = (request: IncomingMessage): string => request.headers["content-type"] ?? ""

const readPlain = (incoming: Incoming, limitBytes: number): Effect.Effect<Buffer, InvalidRequest | ReceiveFailure> => {
  const encoding = incoming.request.headers["content-encoding"] ?? "identity"
  return encoding === "identity"
    ? incoming.receive(limitBytes)
    : new InvalidRequest({ message: "A compressed body is not accepted.", param: null })
}

/** A JSON body, whatever content type it was sent under, except forms; and how many bytes it had. */
export const readDocument = (
  incoming: Incoming,
  limitBytes: number
): Effect.Effect<{ readonly value: unknown; readonly bytes: number }, InvalidRequest | ReceiveFailure> =>
  isForm(typeOf(incoming.request))
    ? new InvalidRequest({
        message: "The body must be JSON, sent as `Content-Type: application/json`, not a form.",
        param: null
      })
    : Effect.flatMap(readPlain(incoming, limitBytes), (body) =>
        Effect.map(parseBody(body), (value) => ({ value, bytes: body.length }))
      )

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
