import { assert, describe, it } from "@effect/vitest"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import { encodeThinking } from "../../../src/providers/gemini/Thinking.ts"
import { request } from "../../contracts/ChatHarness.ts"

type Effort = ChatRequest["reasoningEffort"]

const asked = (reasoningEffort: Effort, maxTokens = 65_536) => request({ reasoningEffort, maxTokens })
const told = (thinkingLevel: string) => ({ includeThoughts: true, thinkingLevel })
const spent = (thinkingBudget: number) => ({ includeThoughts: true, thinkingBudget })

describe("thinking", () => {
  const levels: ReadonlyArray<readonly [Effort, unknown]> = [
    ["low", told("LOW")],
    ["medium", told("MEDIUM")],
    ["high", told("HIGH")],
    ["xhigh", told("HIGH")],
    // It thinks anyway, and would keep its thoughts to itself.
    [undefined, { includeThoughts: true }]
  ]
  for (const [effort, expected] of levels) {
    it(`by level, ${effort}: never a budget, and the thoughts are asked for`, () => {
      assert.deepStrictEqual(encodeThinking(asked(effort), {}), expected)
      assert.deepStrictEqual(encodeThinking(asked(effort), { thinking: "level" }), expected)
    })
  }

  const budgets: ReadonlyArray<readonly [Effort, number, unknown]> = [
    ["low", 65_536, spent(1_024)],
    ["medium", 65_536, spent(8_192)],
    ["high", 65_536, spent(24_576)],
    ["high", 4_096, spent(2_048)],
    ["high", 1_025, spent(512)],
    ["low", 1_024, spent(512)],
    ["low", 1_023, { thinkingBudget: 0 }],
    ["high", 1, { thinkingBudget: 0 }],
    [undefined, 65_536, undefined]
  ]
  for (const [effort, cap, expected] of budgets) {
    it(`by budget, ${effort} within ${cap} tokens: half is left for the answer`, () => {
      assert.deepStrictEqual(encodeThinking(asked(effort, cap), { thinking: "budget" }), expected)
    })
  }

  it("is not spoken of to a model that does not think", () => {
    assert.isUndefined(encodeThinking(asked("high"), { thinking: "none" }))
  })
})
