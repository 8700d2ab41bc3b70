import { useResource } from "../../api/useResource.ts"
import { useMembership } from "../../Session.ts"
import type { Organization } from "./records.ts"

const everySeconds = 10

/** The organization whose member has signed in, as it is now. */
export const useOwnOrganization = () => {
  const own = useMembership()
  return useResource<Organization>(own && `/organizations/${encodeURIComponent(own.id)}`, { everySeconds })
}
