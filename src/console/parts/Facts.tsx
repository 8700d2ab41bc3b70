import type { ComponentChildren } from "preact"
import { Time } from "./Time.tsx"
import { Usd } from "./Usd.tsx"

/** Names and values of one thing. */
export const Facts = ({ children }: { readonly children: ComponentChildren }) => <dl class="facts">{children}</dl>

interface Value {
  readonly children?: ComponentChildren
  /** Unix seconds. */
  readonly at?: number | null | undefined
  readonly usd?: number | null | undefined
  readonly code?: string | null
}

const valueOf = ({ at, children, code, usd }: Value) => {
  if (at !== undefined) return <Time at={at} />
  if (usd !== undefined) return <Usd amount={usd} />
  return code ? <code>{code}</code> : (children ?? <span class="soft">–</span>)
}

/** One without a value is a dash. */
export const Fact = ({ name, ...value }: Value & { readonly name: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{valueOf(value)}</dd>
  </div>
)
