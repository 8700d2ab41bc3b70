import { makeRules, type WireRules } from "../chat/WireRules.ts"
import type { Options } from "./Options.ts"

/** The API's documents differ on names: all of them allow these. */
export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", first: "a-zA-Z_", shortest: 1, longest: 64 },
  searchName: undefined,
  callId: { characters: "!-~", shortest: 1, longest: 128 },
  callArguments: "object",
  toolRoot: "object",
  answerRoot: "any",
  needsItems: false,
  strict: "none",
  system: "apart",
  content: "parts",
  blankUser: false,
  opensWithUser: true,
  prefill: "none"
}

export const rulesOf = makeRules<Options>(rules)
