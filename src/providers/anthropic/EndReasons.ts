import { brokenOff, endReasons } from "../chat/EndReasons.ts"

/** Reasons of Anthropic, and of hosts with such an endpoint, for example GLM. */
export const reasons = endReasons({
  complete: ["end_turn", "stop_sequence", "tool_use"],
  length: ["max_tokens", "model_context_window_exceeded"],
  content_filter: ["refusal", "sensitive", "content_filter"],
  // The client sends the answer back to get the rest. Only this wire has that.
  unfinished: ["pause_turn", "compaction"],
  break: brokenOff
})

/** Content blocks that mean nothing to a client of another wire: the host's own tools, and signed thinking. */
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
