export interface CatalogProvider {
  readonly adapter: string
  readonly base_url?: string
  /** The environment variable that holds the credential. */
  readonly credential?: string
}

export interface CatalogRoute {
  readonly provider: string
  readonly model: string
  readonly preference?: number
}

/** Nano-USD per token, as the catalog below prices every model. */
export const price = { prompt: 1_500n, completion: 7_500n }

/** A catalog of chat models that can do what all of its wires can, priced alike. JSON is YAML. */
export const chatCatalog = (
  providers: Readonly<Record<string, CatalogProvider>>,
  models: Readonly<Record<string, ReadonlyArray<CatalogRoute>>>
): string => {
  const sampling = Object.values(providers).every(({ adapter }) => adapter === "openai-chat")
  return JSON.stringify({
    providers,
    families: { A: { sampling, max_output_policy: "clamp" } },
    models: Object.entries(models).map(([id, routes]) => ({
      id,
      surface: "chat",
      family: "A",
      context_length: 100_000,
      max_output: 8_000,
      pricing: { prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5 },
      reasoning: ["low", "medium", "high"],
      capabilities: ["tools", "vision", ...(sampling ? ["response_format"] : [])],
      image_tokens: 1_000,
      created: "2026-01-01",
      routes
    }))
  })
}
