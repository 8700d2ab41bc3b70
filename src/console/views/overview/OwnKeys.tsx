import { Loaded } from "../../parts/Loaded.tsx"
import { Page } from "../../parts/Page.tsx"
import { Keys } from "../organizations/Keys.tsx"
import { useOwnOrganization } from "../organizations/useOwnOrganization.ts"

/** The keys of a member's organization. */
export const OwnKeys = () => {
  const organization = useOwnOrganization()
  return organization.data === undefined ? (
    <Page title="Keys">
      <Loaded resource={organization}>{() => null}</Loaded>
    </Page>
  ) : (
    <Keys organization={organization.data} frame={Page} />
  )
}
