import type { ServerResponse } from "node:http"
import type { Effect } from "effect"
import type { Failure, InsufficientCredits, PaymentDisputed, SpendLimitReached } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import type { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import type { AnsweredRequest } from "../../services/telemetry/RequestLines.ts"
import type { Answer, EncodeError } from "../Answer.ts"
import type { BodyCutOff, Incoming } from "../body/BodyReceiver.ts"
import type { FieldNames } from "../errors/FieldNames.ts"

/** What a request is counted as, and the words of its errors. */
export interface EndpointBase extends Pick<AnsweredRequest, "path" | "surface"> {
  /** Undefined: the envelope as it is. */
  readonly encodeError?: EncodeError | undefined
  /** Its names for the fields of a chat, if they differ. */
  readonly fieldNames?: FieldNames | undefined
  /** A further header for the id of a request. */
  readonly idHeader?: string | undefined
}

export interface AdmittedRequest extends Incoming {
  readonly record: RequestRecord
  readonly response: ServerResponse
  readonly departure: ClientDeparture
  readonly headers: () => Readonly<Record<string, string>>
  /** Runs by itself before a large body is received. */
  readonly checkSolvency: Effect.Effect<void, InsufficientCredits | SpendLimitReached | PaymentDisputed>
}

/** One that generates. */
export interface Endpoint extends EndpointBase {
  readonly path: string
  readonly surface: Surface
  /** It checks the scope itself, of the surface that its body names. */
  readonly checksScope?: boolean | undefined
  /** A small request takes its rate unit and its hold in one statement. */
  readonly admitsWithHold: boolean
  /** Its requests may wait until others of their organization have closed their holds. */
  readonly hasFittedHold?: boolean | undefined
  readonly answer: (admitted: AdmittedRequest) => Effect.Effect<Answer | undefined, Failure | BodyCutOff>
}
