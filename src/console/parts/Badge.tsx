import type { ComponentChildren } from "preact"
import type { Tone } from "./Status.ts"

export const Badge = ({ children, tone = "soft" }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)
