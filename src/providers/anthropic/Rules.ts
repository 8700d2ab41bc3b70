import { makeRules, type WireRules } from "../chat/WireRules.ts"
import type { Options } from "./Options.ts"

export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 128 },
  searchName: "web_search",
  callId: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  callArguments: "object",
  toolRoot: "object",
  answerRoot: "any",
  needsItems: false,
  strict: "anthropic",
  system: "apart",
  content: "parts",
  blankUser: false,
  opensWithUser: true,
  prefill: "trimmed"
}

export const rulesOf = makeRules<Options>(rules)
