import { Context, Effect } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { whileUnidentified } from "../connections/Connections.ts"
import { readPlain } from "./BodyReader.ts"
import type { ArrivalFailure, Incoming, IncomingBody } from "./BodyReceiver.ts"

/** The body of a request that the platform's router serves; the platform itself would read it without a minimum pace. */
export class RequestBody extends Context.Reference<RequestBody>()("gateway/http/RequestBody", {
  defaultValue: (): { readonly incoming: Incoming<ArrivalFailure> | undefined } => ({ incoming: undefined })
}) {}

/** Frees its memory at the end. */
export const provideBody =
  (incoming: IncomingBody<ArrivalFailure>) =>
  <A, E, R>(serving: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(serving, RequestBody, { incoming }).pipe(Effect.ensuring(Effect.sync(incoming.release)))

type Unreceived = InvalidRequest | Exclude<ArrivalFailure, { readonly _tag: "BodyCutOff" }>

/** Receives the body by the rules of all bodies; interrupts itself if the client leaves. */
export const receiveBody = (limitBytes: number): Effect.Effect<Buffer, Unreceived> =>
  Effect.flatMap(RequestBody, ({ incoming }) =>
    incoming === undefined
      ? Effect.dieMessage("nothing receives the body of this request")
      : Effect.catchTag(readPlain(incoming, limitBytes), "BodyCutOff", () => Effect.interrupt)
  )

/** The same for a client that nothing is known of: its connection makes room for others meanwhile. */
export const receiveUnidentified = (limitBytes: number): Effect.Effect<Buffer, Unreceived> =>
  Effect.flatMap(RequestBody, ({ incoming }) => {
    const receiving = receiveBody(limitBytes)
    return incoming === undefined ? receiving : whileUnidentified(incoming.request, receiving)
  })
