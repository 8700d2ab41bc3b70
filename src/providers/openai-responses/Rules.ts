import { makeRules, type WireRules } from "../chat/WireRules.ts"
import type { Options } from "./Options.ts"

export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  searchName: undefined,
  callId: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  callArguments: "text",
  toolRoot: "properties",
  answerRoot: "properties",
  needsItems: true,
  strict: "openai",
  system: "anywhere",
  content: "parts",
  blankUser: true,
  opensWithUser: false,
  prefill: "any"
}

export const rulesOf = makeRules<Options>(rules)
