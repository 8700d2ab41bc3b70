import type { ComponentChildren } from "preact"

export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

export const Loading = () => (
  <p class="empty" role="status">
    Loading…
  </p>
)
