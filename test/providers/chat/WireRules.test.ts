import type { WireRules } from "../../../src/providers/chat/WireRules.ts"
import { assert, it } from "../../harness/It.ts"
import { wireRules } from "./Wires.ts"

/** The rules of each vendor's wire, from its documentation or its host's answers. */
const expected: Readonly<Record<(typeof wireRules)[number][0], WireRules>> = {
  "openai-chat": {
    toolName: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
    searchName: undefined,
    callId: { characters: "!-~", minLength: 1, maxLength: 40 },
    callArguments: "text",
    toolRoot: "properties",
    answerRoot: "properties",
    requiresItems: true,
    strict: "openai",
    system: "joined",
    content: "text",
    acceptsBlankUser: true,
    requiresUserFirst: false,
    prefill: "any"
  },
  "openai-responses": {
    toolName: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
    searchName: undefined,
    callId: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
    callArguments: "text",
    toolRoot: "properties",
    answerRoot: "properties",
    requiresItems: true,
    strict: "openai",
    system: "anywhere",
    content: "parts",
    acceptsBlankUser: true,
    requiresUserFirst: false,
    prefill: "any"
  },
  anthropic: {
    toolName: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 128 },
    searchName: "web_search",
    callId: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
    callArguments: "object",
    toolRoot: "object",
    answerRoot: "any",
    requiresItems: false,
    strict: "anthropic",
    system: "separate",
    content: "parts",
    acceptsBlankUser: false,
    requiresUserFirst: true,
    prefill: "trimmed"
  },
  gemini: {
    toolName: { characters: "a-zA-Z0-9_-", first: "a-zA-Z_", minLength: 1, maxLength: 64 },
    searchName: undefined,
    callId: { characters: "!-~", minLength: 1, maxLength: 128 },
    callArguments: "object",
    toolRoot: "object",
    answerRoot: "any",
    requiresItems: false,
    strict: "none",
    system: "separate",
    content: "parts",
    acceptsBlankUser: false,
    requiresUserFirst: true,
    prefill: "none"
  }
}

for (const [wire, rules] of wireRules) {
  it(`the rules of ${wire} are those of its hosts`, () => assert.deepStrictEqual(rules, expected[wire]))
}
