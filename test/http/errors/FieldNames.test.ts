import { InvalidRequest } from "../../../src/domain/Failure.ts"
import { toWire } from "../../../src/http/errors/ErrorMessages.ts"
import { encodeMessagesError } from "../../../src/http/messages/MessagesAnswer.ts"
import { responsesError } from "../../../src/http/responses/ResponsesObject.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("a field that a model cannot serve", () => {
  it.each([
    ["response_format", "text.format", "output_config.format"],
    ["web_search", "web_search", "web_search"],
    ["reasoning_effort", "reasoning", "thinking"],
    ["tools", "tools", "tools"]
  ])("has the name of its dialect: %s", (param, ofResponses, ofMessages) => {
    const refusal = toWire(new InvalidRequest({ param, message: `\`${param}\` is not available for \`m\`.` }))
    assert.deepStrictEqual(responsesError(refusal).error, {
      message: `\`${ofResponses}\` is not available for \`m\`.`,
      type: "invalid_request_error",
      param: ofResponses,
      code: null
    })
    assert.deepStrictEqual<unknown>(encodeMessagesError(refusal, "req_1"), {
      type: "error",
      error: { type: "invalid_request_error", message: `\`${ofMessages}\` is not available for \`m\`.` },
      request_id: "req_1"
    })
  })
})
