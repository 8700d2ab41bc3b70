import { brokenOff, endReasons, google } from "../chat/EndReasons.ts"

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
    ...google.content_filter,
    "guardrail_intervened"
  ],
  break: [
    ...brokenOff,
    // Google sends these for calls with invalid syntax, and for ends without a cause.
    "function_call_filter",
    ...google.break
  ]
})
