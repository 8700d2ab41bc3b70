import { endReasons } from "../chat/EndReasons.ts"

/** The `status` of a response that has ended. */
export const statuses = endReasons({
  complete: ["completed"],
  length: ["incomplete"],
  break: ["failed", "cancelled", "canceled", "in_progress", "queued", "expired"]
})

/** `incomplete_details.reason`. */
export const incompleteReasons = endReasons({
  length: ["max_output_tokens", "max_tokens", "length", "model_context_window_exceeded"],
  content_filter: ["content_filter"]
})

/** Output items that hold nothing for a client of another wire: calls of tools that the host runs, and their results. */
export const silentItems: ReadonlySet<unknown> = new Set([
  "reasoning",
  "web_search_call",
  "file_search_call",
  "computer_call",
  "computer_call_output",
  "code_interpreter_call",
  "image_generation_call",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "mcp_call",
  "mcp_list_tools",
  "mcp_approval_request",
  "mcp_approval_response",
  "tool_search_call",
  "tool_search_output",
  "compaction"
])
