import type { ComponentChildren } from "preact"

/** Names and values of one thing. */
export const Facts = ({ children }: { readonly children: ComponentChildren }) => <dl class="facts">{children}</dl>

export const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children ?? <span class="soft">–</span>}</dd>
  </div>
)
