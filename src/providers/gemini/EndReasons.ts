import { endReasons, google } from "../chat/EndReasons.ts"

export const reasons = endReasons({
  // Hosts with Google's format use the second one for calls.
  complete: ["stop", "function_call"],
  length: ["max_tokens", "continuation"],
  content_filter: google.content_filter,
  break: [...google.break, "no_image", "image_other"]
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
