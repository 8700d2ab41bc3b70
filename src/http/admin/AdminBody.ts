import { HttpServerError, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Option } from "effect"
import { BodyTooLarge, type Failure, InvalidRequest } from "../../domain/Failure.ts"
import { keepConnectionOfUnread } from "../../node/UnreadRequest.ts"
import { isMultipart, requireNoForm } from "../body/BodyReader.ts"

/** The limit of bodies that the platform reads: the admin API's. */
export const adminBodyBytes = 262_144

const tooLarge = new BodyTooLarge({ limitBytes: adminBodyBytes })

/** Comes before the platform reads. */
export const requireReadableBody = Effect.gen(function* () {
  const incoming = NodeHttpServerRequest.toIncomingMessage(yield* HttpServerRequest.HttpServerRequest)
  const length = Number(incoming.headers["content-length"] ?? 0)
  if (length > adminBodyBytes) return yield* tooLarge
  const { "content-type": type = "", "transfer-encoding": encoding } = incoming.headers
  // Clients name a form where they have nothing to send, as `curl --data ""` does.
  if (length > 0 || encoding !== undefined || isMultipart(type)) yield* requireNoForm(incoming)
  keepConnectionOfUnread(incoming)
})

/** The platform dies on an unreadable body; only its message tells one that is too large. */
export const unreadBody = (defect: unknown): Option.Option<Failure> => {
  if (!(defect instanceof HttpServerError.RequestError) || defect.reason !== "Decode") return Option.none()
  const isTooLarge = defect.cause instanceof Error && defect.cause.message === "maxBytes exceeded"
  return Option.some(
    isTooLarge ? tooLarge : new InvalidRequest({ message: "The body is not valid JSON.", param: null })
  )
}
