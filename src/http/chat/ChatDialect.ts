import type { IncomingHttpHeaders } from "node:http"
import type { Either } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { IdPrefix } from "../../services/runtime/Ids.ts"
import type { FieldNames } from "../errors/ErrorMessages.ts"
import type { EncodeError } from "../HttpAnswer.ts"
import type { StreamEncoder } from "./Sse.ts"

/** The fields that begin every answer. */
export interface AnswerHead {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** The catalog id of the request. */
  readonly model: string
}

/** A wire format of chat requests. After `decode`, requests of all dialects are handled alike. */
export interface ChatDialect {
  readonly path: string
  readonly idPrefix: IdPrefix
  /** A further response header with the request id, such as that of the Messages API. */
  readonly idHeader?: string | undefined
  /**
   * Whether a request that the balance does not cover runs with a lower output limit, even if its organization has not enabled
   * that.
   */
  readonly canReduceHold: boolean
  /** Whether `metadata.user_id` names an end user. */
  readonly namesUserInMetadata?: boolean | undefined
  readonly decode: (json: unknown, headers: IncomingHttpHeaders) => Either.Either<ChatRequest, InvalidRequest>
  readonly encodeAnswer: (
    answerHead: AnswerHead,
    request: ChatRequest,
    answer: ChatAnswer,
    usage: Usage,
    charge: NanoUsd
  ) => unknown
  readonly encoder: (answerHead: AnswerHead, request: ChatRequest) => StreamEncoder
  /** The dialect's names for chat fields that it names differently. */
  readonly fieldNames?: FieldNames | undefined
  readonly encodeError?: EncodeError | undefined
}
