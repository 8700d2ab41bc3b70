/** A chat model of the list. */
export const listedExample = (model: string, created: number) => ({
  id: model,
  object: "model",
  created,
  owned_by: "generation-gateway",
  surface: "chat",
  context_length: 400_000,
  top_provider: { context_length: 400_000, max_completion_tokens: 128_000 },
  architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
  capabilities: ["tools", "vision", "response_format", "web_search", "reasoning"],
  supported_parameters: ["max_tokens", "max_completion_tokens", "tools", "tool_choice", "parallel_tool_calls"],
  pricing: {
    prompt_per_1m_usd: 1.75,
    completion_per_1m_usd: 14,
    cached_prompt_per_1m_usd: 0.175,
    cache_write_per_1m_usd: 1.75,
    cache_write_1h_per_1m_usd: 1.75,
    prompt: "0.00000175",
    completion: "0.000014",
    input_cache_read: "0.000000175",
    input_cache_write: "0.00000175",
    input_cache_write_1h: "0.00000175",
    web_search_per_1k_usd: 10,
    web_search: "0.01",
    max_web_searches: 10,
    approximate: true
  },
  params: [{ key: "max_tokens", type: "number", default: 4096, min: 1, max: 128_000, step: 1 }]
})
