import { HttpServerError, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Option } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { decodeText, isMultipart, requireNoForm } from "../body/BodyReader.ts"
import { receiveBody, receiveUnidentified } from "../body/RequestBody.ts"

const adminBodyBytes = 262_144
/** A link or a token is much shorter. */
const credentialBytes = 16_384

/** The platform finds the body that was received in the place of its own readers, which have no minimum pace. */
const setBody = (request: HttpServerRequest.HttpServerRequest, bytes: Buffer, text: string): void => {
  Object.defineProperties(request, {
    text: { value: Effect.succeed(text) },
    arrayBuffer: { value: Effect.succeed(bytes) }
  })
}

const receiveBy = <E>(receive: Effect.Effect<Buffer, E>) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const incoming = NodeHttpServerRequest.toIncomingMessage(request)
    const {
      "content-length": length = "0",
      "content-type": type = "",
      "transfer-encoding": encoding
    } = incoming.headers
    const isSent = Number(length) > 0 || encoding !== undefined
    // Clients name a form where they have nothing to send, as `curl --data ""` does.
    if (isSent || isMultipart(type)) yield* requireNoForm(incoming)
    if (!isSent) return
    const bytes = yield* receive
    setBody(request, bytes, yield* decodeText(bytes))
  })

/** Comes before the platform reads the body, and once it is known who sends it. */
export const receiveAdminBody = receiveBy(receiveBody(adminBodyBytes))

/** The same for a body that says who sends it. */
export const receiveCredential = receiveBy(receiveUnidentified(credentialBytes))

/** The platform dies on a body that it cannot parse. */
export const unreadBody = (defect: unknown): Option.Option<InvalidRequest> =>
  defect instanceof HttpServerError.RequestError && defect.reason === "Decode"
    ? Option.some(new InvalidRequest({ message: "The body is not valid JSON.", param: null }))
    : Option.none()
