import { makeRules, type WireRules } from "../chat/WireRules.ts"
import type { Options } from "./Options.ts"

/** The strictest rules of this wire's hosts: OpenAI's own for names, ids and schemas. */
export const rules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  searchName: undefined,
  callId: { characters: "!-~", shortest: 1, longest: 40 },
  callArguments: "text",
  toolRoot: "properties",
  answerRoot: "properties",
  needsItems: true,
  strict: "openai",
  system: "joined",
  content: "text",
  blankUser: true,
  opensWithUser: false,
  prefill: "any"
}

/** A host that takes cache marks takes the parts that have them. */
export const rulesOf = makeRules(rules, ({ blank_user, cache = "none", content, system = "joined" }: Options) => ({
  system,
  blankUser: blank_user ?? rules.blankUser,
  content: content ?? (cache === "none" ? rules.content : "marked")
}))
