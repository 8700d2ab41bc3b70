import { brokenOff, endReasons } from "../chat/EndReasons.ts"

/** Reasons of OpenAI, vLLM, SGLang, TGI, Together, Mistral, Cohere, DeepSeek, GLM, MiniMax, Moonshot and Google's OpenAI endpoint. */
export const reasons = endReasons({
  complete: [
    "stop",
    "end",
    "end_turn",
    "eos",
    "eos_token",
    "stop_sequence",
    "stop_token",
    "complete",
    "completed",
    "tool_calls",
    "tool_call",
    "tool_use",
    "function_call",
    "function_calls"
  ],
  length: [
    "length",
    "max_tokens",
    "max_length",
    "max_completion_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
    "context_length_exceeded",
    // A loop that the host cut.
    "repetition",
    "repetition_truncation"
  ],
  content_filter: [
    "content_filter",
    "content_filtered",
    "refusal",
    "sensitive",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "model_armor",
    "jailbreak",
    "image_safety",
    "image_prohibited_content",
    "image_recitation",
    "guardrail_intervened"
  ],
  break: [
    ...brokenOff,
    // Google sends these for calls with invalid syntax, and for ends without a cause.
    "function_call_filter",
    "malformed_function_call",
    "unexpected_tool_call",
    "too_many_tool_calls",
    "missing_thought_signature",
    "malformed_response",
    "other",
    "language"
  ]
})
