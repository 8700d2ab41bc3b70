import type { Route } from "../../domain/Model.ts"

/** Vendors that fetch pictures by themselves, from outside of every network that a gateway may stand in. */
const fetchingHosts: ReadonlySet<string> = new Set(["api.anthropic.com", "api.openai.com", "api.x.ai", "openrouter.ai"])

/** Whether a route gets pictures as bytes: a host that fetches what a customer names may stand beside anything. */
export const inlinesImages = ({ options, provider: { baseUrl = "" } }: Route): boolean => {
  if (typeof options.inline_images === "boolean") return options.inline_images
  return !URL.canParse(baseUrl) || !fetchingHosts.has(new URL(baseUrl).hostname)
}
