import type { ComponentChildren } from "preact"
import { useMembership } from "../Session.ts"

/** Not for members, whose records do not have what it shows. */
export const Internal = ({ children }: { readonly children: () => ComponentChildren }) =>
  useMembership() === undefined ? <>{children()}</> : null
