import type { ChatDialect } from "../chat/ChatDialect.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { responseJson, responsesError, responsesFields } from "./ResponsesAnswer.ts"
import { decodeResponsesBody } from "./ResponsesBody.ts"
import { createResponse } from "./ResponsesSchema.ts"
import { ResponsesEncoder } from "./ResponsesStream.ts"

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
