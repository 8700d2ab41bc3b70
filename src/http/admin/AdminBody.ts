import { HttpServerError, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Option } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { decodeText, isMultipart, requireNoForm } from "../body/BodyReader.ts"
import { receiveBody, receiveUnidentified } from "../body/RequestBody.ts"

const adminBodyBytes = 262_144
/** A link or a token is much shorter. */
const credentialBytes = 16_384

/** Replaces the platform's readers, which have no minimum pace, with the received body. */
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
    // Clients may name a form although they send nothing, as `curl --data ""` does.
    if (isSent || isMultipart(type)) yield* requireNoForm(incoming)
    if (!isSent) return
    const bytes = yield* receive
    setBody(request, bytes, yield* decodeText(bytes))
  })

/** Runs after authentication and before the platform reads the body. */
export const receiveAdminBody = receiveBy(receiveBody(adminBodyBytes))

/** Like `receiveAdminBody`, for a body that itself authenticates its sender. */
export const receiveCredential = receiveBy(receiveUnidentified(credentialBytes))

/** The platform dies on a body that it cannot parse. */
export const unreadBody = (defect: unknown): Option.Option<InvalidRequest> =>
  defect instanceof HttpServerError.RequestError && defect.reason === "Decode"
    ? Option.some(new InvalidRequest({ message: "The body is not valid JSON.", param: null }))
    : Option.none()
