import { Effect } from "effect"
import type { Provider } from "../../services/routing/Provider.ts"
import { makeChatAdapter } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/InlineImages.ts"
import type { Upstream } from "../client/Upstream.ts"
import { decodeFailure, refusesThinking } from "./Failure.ts"
import { features, type Options, options } from "./Options.ts"
import { encodeRequest, ownStops, type Quirks } from "./Request.ts"
import { decodeAnswer, decodeUsage, errorIn } from "./Response.ts"
import { makeDecoder } from "./Stream.ts"
import { forcesTool, isCountable, thinkingFields } from "./Thinking.ts"

/** Anthropic's Messages API, and any host that speaks it. */
export const make: Effect.Effect<Provider, never, Upstream> = Effect.map(
  makeChatAdapter<Options, Quirks>({
    options,
    features,
    inlines: inlinesImages,
    // Left to the model, the answer would be another than the one asked for.
    declines: (route, request) => (!options.of(route).forced_tools && forcesTool(request) ? "tool_choice" : undefined),
    endpoint: ({ options: { auth, version } }) => ({
      path: "/v1/messages",
      authorization: (secret) => (auth === "bearer" ? { authorization: `Bearer ${secret}` } : { "x-api-key": secret }),
      headers: { "anthropic-version": version }
    }),
    encode: encodeRequest,
    decode: (body, { newId }) => decodeAnswer(body, newId),
    decoder: (call) => ({ ...makeDecoder(call.newId), isCountable: () => isCountable(call) }),
    errorIn,
    usageIn: ({ usage }) => decodeUsage(usage),
    decodeFailure,
    quirks: () => ({ thinking: true }),
    adapt: ({ options, quirks, request }, refusal) =>
      quirks.thinking && thinkingFields(options, request).thinking !== undefined && refusesThinking(refusal)
        ? { changes: { thinking: false }, isLasting: false }
        : undefined,
    ownStops
  }),
  (chat) => ({ adapter: "anthropic", options: options.decode, chat })
)
