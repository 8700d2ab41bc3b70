import { makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { native, nativeHeaders } from "./Native.ts"
import { features, type Options, options } from "./Options.ts"
import { encodeRequest, forcesTool, isCountable, ownStops, type Quirks, thinkingOf } from "./Request.ts"
import { decodeAnswer, decodeFailure, decodeUsage, errorIn, refusesThinking } from "./Response.ts"
import { rulesOf } from "./Rules.ts"
import { makeDecoder } from "./Stream.ts"

export const make = makeChatProvider<Options, Quirks>("anthropic", {
  options,
  rules: rulesOf,
  features,
  inlines: inlinesImages,
  // Leaving the choice to the model would change the request's meaning.
  declines: (route, request) => (!options.of(route).forced_tools && forcesTool(request) ? "tool_choice" : undefined),
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
      ? { changes: { thinking: false }, isLasting: false }
      : undefined,
  ownStops
})
