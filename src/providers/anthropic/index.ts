import { makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder, refusesThinking } from "./AnthropicAnswer.ts"
import {
  encodeRequest,
  features,
  forcesTool,
  isCountable,
  localStops,
  type Options,
  options,
  type Quirks,
  rulesOf,
  thinkingOf
} from "./AnthropicRequest.ts"
import { native, nativeHeaders } from "./NativeMessages.ts"

export const make = makeChatProvider<Options, Quirks>("anthropic", {
  optionsDecoder: options,
  rules: rulesOf,
  features,
  requiresInlineImages: inlinesImages,
  // The route declines a forced tool, because dropping the choice would change the meaning of the request.
  findUnsupportedField: (route, request) =>
    !options.of(route).forced_tools && forcesTool(request) ? "tool_choice" : undefined,
  endpoint: (call) => ({
    path: "/v1/messages",
    authorization: (secret) =>
      call.options.auth === "bearer" ? { authorization: `Bearer ${secret}` } : { "x-api-key": secret },
    headers: nativeHeaders(call)
  }),
  encode: encodeRequest,
  native,
  decode: (body, call) => decodeAnswer(body, call.newId, call),
  decoder: (call) => ({ ...makeDecoder(call), isCountable: () => isCountable(call) }),
  errorIn,
  usageIn: ({ usage }) => decodeUsage(usage),
  decodeFailure,
  quirks: () => ({ thinking: true }),
  adapt: ({ native, options, quirks, request }, refusal) =>
    quirks.thinking && (native ?? thinkingOf(options, request)) !== undefined && refusesThinking(refusal)
      ? { changes: { thinking: false }, isPermanent: false }
      : undefined,
  localStops: localStops
})
