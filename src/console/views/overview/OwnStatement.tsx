import { useMembership } from "../../Session.ts"
import { Statement } from "../statements/Statement.tsx"

/** That of a member's organization. */
export const OwnStatement = () => {
  const own = useMembership()
  return own === undefined ? null : <Statement id={own.id} />
}
