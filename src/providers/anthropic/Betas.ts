/** They change neither the price of a request beyond what its hold covers, nor who sees what the host keeps. */
const harmless = [
  "advanced-tool-use",
  "claude-code",
  "computer-use",
  "context-management",
  "effort",
  "extended-cache-ttl",
  "fine-grained-tool-streaming",
  "inline-tools",
  "interleaved-thinking",
  "mid-conversation-output-config",
  "mid-conversation-system",
  "mid-conversation-system-clear-at",
  "mid-conversation-tool-changes",
  "model-context-window-exceeded",
  "output-128k",
  "output-300k",
  "pdfs",
  "prompt-caching",
  "prompt-caching-scope",
  "redact-thinking",
  "structured-outputs",
  "task-budgets",
  "thinking-binding-controls",
  "thinking-display-updates",
  "thinking-token-count",
  "token-counting",
  "token-efficient-tools",
  "tool-examples",
  "tool-search-tool",
  "web-search"
]

const harmlessBeta = new RegExp(`^(${harmless.join("|")})-\\d{4}-?\\d{2}-?\\d{2}$`)
const longest = 64
/** Clients send up to about fifteen; hosts refuse long headers. */
const most = 32

/** Any other beta is dropped, as unknown fields of a body are. */
export const keepHarmless = (betas: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept = new Set<string>()
  for (const given of betas) {
    if (given.length > longest) continue
    const beta = given.trim().toLowerCase()
    if (harmlessBeta.test(beta)) kept.add(beta)
    if (kept.size === most) break
  }
  return [...kept]
}
