import { brokenOff, endReasons } from "../chat/EndReasons.ts"

/** Of Anthropic, and of hosts with an endpoint like its own, such as GLM's. */
export const reasons = endReasons({
  complete: ["end_turn", "stop_sequence", "tool_use"],
  length: ["max_tokens", "model_context_window_exceeded"],
  content_filter: ["refusal", "sensitive", "content_filter"],
  // The client sends the answer back for the rest, which it can on this wire alone.
  unfinished: ["pause_turn", "compaction"],
  break: brokenOff
})

/** Content blocks that hold nothing for a client of another wire: what tools of the host did, and signed thinking. */
export const silentBlocks: ReadonlySet<unknown> = new Set([
  "redacted_thinking",
  "server_tool_use",
  "web_search_tool_result",
  "web_fetch_tool_result",
  "code_execution_tool_result",
  "bash_code_execution_tool_result",
  "text_editor_code_execution_tool_result",
  "tool_search_tool_result",
  "advisor_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
  "container_upload",
  "compaction",
  "fallback"
])
