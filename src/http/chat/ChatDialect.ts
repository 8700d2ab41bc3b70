import type { IncomingHttpHeaders } from "node:http"
import type { Either } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { IdPrefix } from "../../services/runtime/Ids.ts"
import type { EncodeError } from "../Answer.ts"
import type { FieldNames } from "../errors/FieldNames.ts"
import type { StreamEncoder } from "./Sse.ts"

export interface AnswerName {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** As requested. */
  readonly model: string
}

/** One wire format for chats; after `decode` all dialects share one path. */
export interface ChatDialect {
  readonly path: string
  readonly idPrefix: IdPrefix
  /** A further header for the id of a request. */
  readonly idHeader?: string | undefined
  /** Requests that the balance does not cover run with a lower cap, whatever their organization's setting. */
  readonly hasFittedHold: boolean
  /** Whether `metadata.user_id` names an end user. */
  readonly namesUserInMetadata?: boolean | undefined
  readonly decode: (json: unknown, headers: IncomingHttpHeaders) => Either.Either<ChatRequest, InvalidRequest>
  readonly encodeAnswer: (
    name: AnswerName,
    request: ChatRequest,
    answer: ChatAnswer,
    usage: Usage,
    charge: NanoUsd
  ) => unknown
  readonly encoder: (name: AnswerName, request: ChatRequest) => StreamEncoder
  /** Its words for the fields of a chat, where they differ. */
  readonly fieldNames?: FieldNames | undefined
  readonly encodeError?: EncodeError | undefined
}
