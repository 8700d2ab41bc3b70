import type { ComponentChildren } from "preact"

/** Names and values of one thing. */
export const Facts = ({ of }: { readonly of: ReadonlyArray<readonly [name: string, value: ComponentChildren]> }) => (
  <dl class="facts">
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value ?? <span class="soft">–</span>}</dd>
      </div>
    ))}
  </dl>
)
