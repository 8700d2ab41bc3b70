import type { ComponentChildren } from "preact"

export type Tone = "good" | "warn" | "bad" | "soft"

export const Badge = ({ children, tone = "soft" }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)
