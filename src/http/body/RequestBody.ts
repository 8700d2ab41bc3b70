import { Context, Effect } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { whileUnidentified } from "../connections/Connections.ts"
import { readPlain } from "./BodyReader.ts"
import type { ArrivalFailure, Incoming, IncomingBody } from "./BodyReceiver.ts"

/** Receives the body for endpoints of the platform's router, which itself has no minimum pace. */
class RequestBody extends Context.Reference<RequestBody>()("gateway/http/RequestBody", {
  defaultValue: (): { readonly incoming: Incoming<ArrivalFailure> | undefined } => ({ incoming: undefined })
}) {}

/** Provides the body to an effect and frees the body's memory after it. */
export const provideBody =
  (incoming: IncomingBody<ArrivalFailure>) =>
  <A, E, R>(serving: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(serving, RequestBody, { incoming }).pipe(Effect.ensuring(Effect.sync(incoming.release)))

type ReceiveBodyFailure = InvalidRequest | Exclude<ArrivalFailure, { readonly _tag: "BodyCutOff" }>

/** Receives the body with the limits that all bodies have. Interrupts itself if the client disconnects. */
export const receiveBody = (limitBytes: number): Effect.Effect<Buffer, ReceiveBodyFailure> =>
  Effect.flatMap(RequestBody, ({ incoming }) =>
    incoming === undefined
      ? Effect.dieMessage("nothing receives the body of this request")
      : Effect.catchTag(readPlain(incoming, limitBytes), "BodyCutOff", () => Effect.interrupt)
  )

/** Like `receiveBody`, before the client is authenticated: until then its connection may be closed to make room. */
export const receiveUnidentified = (limitBytes: number): Effect.Effect<Buffer, ReceiveBodyFailure> =>
  Effect.flatMap(RequestBody, ({ incoming }) => {
    const receiving = receiveBody(limitBytes)
    return incoming === undefined ? receiving : whileUnidentified(incoming.request, receiving)
  })
