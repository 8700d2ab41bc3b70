import { Badge } from "../../parts/Badge.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Page } from "../../parts/Page.tsx"
import { usePaymentLimits } from "../../Session.ts"
import { stateOf } from "../organizations/Organizations.tsx"
import { Tiles } from "../organizations/Tiles.tsx"
import { useOwnOrganization } from "../organizations/useOwnOrganization.ts"
import { OpenPayments } from "../payments/OpenPayments.tsx"
import { Failures } from "./Failures.tsx"

/** What a member's organization has, spends and was refused. */
export const Overview = () => {
  const organization = useOwnOrganization()
  const state = organization.data && stateOf(organization.data)
  const takesPayments = usePaymentLimits() !== null
  return (
    <Page title="Overview" lead={state && <Badge tone={state.tone}>{state.text}</Badge>}>
      <Loaded resource={organization}>{(record) => <Tiles organization={record} />}</Loaded>
      {takesPayments && <OpenPayments />}
      <Failures />
    </Page>
  )
}
