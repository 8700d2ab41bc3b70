import { endReasons } from "../chat/EndReasons.ts"

export const reasons = endReasons({
  // Hosts with Google's format use the second one for calls.
  complete: ["stop", "function_call"],
  length: ["max_tokens", "continuation"],
  content_filter: [
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "model_armor",
    "jailbreak",
    "image_safety",
    "image_prohibited_content",
    "image_recitation"
  ],
  break: [
    "other",
    "language",
    "no_image",
    "image_other",
    "malformed_function_call",
    "malformed_response",
    "unexpected_tool_call",
    "too_many_tool_calls",
    "missing_thought_signature"
  ]
})

/** Fields of a part that the gateway reads, that describe other fields, or that hold results of the host's tools. */
export const knownFields: ReadonlySet<string> = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "functionCall",
  "toolCall",
  "toolResponse",
  "executableCode",
  "codeExecutionResult",
  "partMetadata",
  "videoMetadata",
  "mediaResolution"
])
