import type { ChatEvent, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { AnswerName, ChatDialect } from "../chat/ChatDialect.ts"
import type { StreamEncoder } from "../chat/Sse.ts"
import { servedPath } from "../schema/ServedPath.ts"
import { responseJson, responsesError, responsesFields } from "./ResponsesAnswer.ts"
import { decodeResponsesBody } from "./ResponsesBody.ts"
import { createResponse } from "./ResponsesSchema.ts"
import { Events, NativeEncoder, TranslatedEncoder } from "./ResponsesStream.ts"

/** The first events show whether the host speaks this dialect. */
class ResponsesEncoder implements StreamEncoder {
  private encoder: StreamEncoder | undefined
  private readonly name: AnswerName
  private readonly request: ChatRequest

  constructor(name: AnswerName, request: ChatRequest) {
    this.name = name
    this.request = request
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    return this.encoder?.encode(events) ?? this.begin(events, (encoder) => encoder.encode(events))
  }

  finish(usage: Usage, charge: NanoUsd): string {
    return this.encoder?.finish(usage, charge) ?? this.begin([], (encoder) => encoder.finish(usage, charge))
  }

  error(...failure: Parameters<StreamEncoder["error"]>): string {
    return this.encoder?.error(...failure) ?? this.begin([], (encoder) => encoder.error(...failure))
  }

  private begin(first: ReadonlyArray<ChatEvent>, encode: (encoder: StreamEncoder) => string): string {
    const events = new Events(this.name, this.request)
    const isNative = first.some(({ type }) => type === "native")
    this.encoder = isNative
      ? new NativeEncoder(events, this.name)
      : new TranslatedEncoder(events, this.name, this.request)
    return (isNative ? "" : events.start()) + encode(this.encoder)
  }
}

export const responses: ChatDialect = {
  path: servedPath(createResponse),
  idPrefix: "resp",
  hasFittedHold: true,
  decode: decodeResponsesBody,
  encodeAnswer: responseJson,
  encoder: (name, request) => new ResponsesEncoder(name, request),
  fieldNames: responsesFields,
  encodeError: responsesError
}
