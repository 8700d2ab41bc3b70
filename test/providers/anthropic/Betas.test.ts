import { filterBetas } from "../../../src/providers/anthropic/NativeMessages.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("the betas of a client", () => {
  it("are passed on where they are those of coding agents, whatever their case, once each", () => {
    const agents = [
      "claude-code-20250219",
      "interleaved-thinking-2025-05-14",
      "redact-thinking-2026-02-12",
      "thinking-token-count-2026-05-13",
      "context-management-2025-06-27",
      "prompt-caching-scope-2026-01-05",
      "mid-conversation-system-2026-04-07",
      "advanced-tool-use-2025-11-20",
      "effort-2025-11-24",
      "extended-cache-ttl-2025-04-11",
      "fine-grained-tool-streaming-2025-05-14"
    ]
    assert.deepStrictEqual(filterBetas(agents), agents)
    assert.deepStrictEqual(filterBetas([" EFFORT-2025-11-24", "effort-2025-11-24 "]), ["effort-2025-11-24"])
  })

  for (const [what, beta] of [
    ["doubles the price of a long prompt", "context-1m-2025-08-07"],
    ["has a price of its own", "fast-mode-2026-02-01"],
    ["runs a tool at the host", "code-execution-2025-08-25"],
    ["reaches other servers", "mcp-client-2025-11-20"],
    ["reaches the operator's files", "files-api-2025-04-14"],
    ["is charged beside the usage", "compact-2026-01-12"],
    ["is of another account", "oauth-2025-04-20"],
    ["is unknown", "of-tomorrow-2027-01-01"],
    ["has no date", "effort"],
    ["hides in another", "effort-2025-11-24;context-1m-2025-08-07"]
  ] as const) {
    it(`are dropped where one ${what}`, () => assert.deepStrictEqual(filterBetas([beta]), []))
  }

  it("stay short, however many dates of them are sent", () => {
    const many = Array.from({ length: 1000 }, (_, at) => `interleaved-thinking-${2000 + at}-01-01`)
    assert.isBelow(filterBetas(many).join(",").length, 2_048)
  })
})
