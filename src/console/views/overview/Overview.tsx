import type { FailureCount } from "../../../services/telemetry/RequestLog.ts"
import { useResource } from "../../api/useResource.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Badge, Time } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useHasRole, useMembership, usePaymentLimits } from "../../SignedIn.ts"
import { Keys } from "../organizations/Keys.tsx"
import { stateOf } from "../organizations/Organization.tsx"
import type { Organization } from "../organizations/records.ts"
import { Tiles } from "../organizations/Tiles.tsx"
import { OpenPayments } from "../payments/Payments.tsx"
import { statusOf } from "../requests/RequestRows.ts"
import { Statement } from "../statements/Statement.tsx"

const organizationSeconds = 10

/** Polls the organization of the signed-in member. */
const useOwnOrganization = () => {
  const own = useMembership()
  return useResource<Organization>(own && `/organizations/${encodeURIComponent(own.id)}`, {
    everySeconds: organizationSeconds
  })
}

type Failure = typeof FailureCount.Encoded
interface FailureList {
  readonly data: ReadonlyArray<Failure>
}

const span = "7d"
const failureSeconds = 60

const keyOf = ({ code, status }: Failure) => `${status} ${code}`

const Outcome = ({ failure: { code, status } }: { readonly failure: Failure }) => (
  <>
    <Badge tone={statusOf(status, code).tone}>{status}</Badge>{" "}
    <a href={link(["requests"], { status, code, since: span })}>
      {code ?? (status === 400 ? "invalid request" : "other errors")}
    </a>
  </>
)

/** Failed requests by error. Each error links to its requests. */
const Failures = () => {
  const path = "/requests/failures"
  const failures = useResource<FailureList>(path, { query: { since: span }, everySeconds: failureSeconds })
  const today = useResource<FailureList>(path, { query: { since: "today" }, everySeconds: failureSeconds })
  const counts = today.data && new Map(today.data.data.map((failure) => [keyOf(failure), failure.requests]))
  return (
    <Section title="Failed requests">
      <Loaded resource={failures}>
        {({ data }) => (
          <Table
            label="Failed requests"
            empty="No failed requests in the last 7 days."
            rows={data}
            rowKey={keyOf}
            columns={[
              { title: "Error", kind: "custom", value: (failure) => <Outcome failure={failure} /> },
              { title: "Today (UTC)", kind: "number", value: (failure) => counts && (counts.get(keyOf(failure)) ?? 0) },
              { title: "Last 7 days", kind: "number", value: ({ requests }) => requests },
              { title: "Last seen", kind: "custom", value: ({ last_at }) => <Time at={last_at} isRelative /> }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}

const FirstSteps = ({ organization: { available_usd } }: { readonly organization: Organization }) => {
  const canPay = usePaymentLimits() !== null
  // Without the role write, one can neither pay nor create a key.
  if (!useHasRole("write")) return null
  return (
    <Section title="First steps">
      <ol class="panel steps">
        {available_usd <= 0 && (
          <li>
            {canPay ? <a href={link(["payments"])}>Add credits</a> : "Ask the operator of this gateway for credits"}
          </li>
        )}
        <li>
          <a href={link(["keys"])}>Create a key</a>. Its dialog shows your first request as code.
        </li>
        <li>
          Or send the first request in the <a href={link(["playground"])}>playground</a>.
        </li>
      </ol>
    </Section>
  )
}

/** The balance, spend and failed requests of a member's organization. */
export const Overview = () => {
  const organization = useOwnOrganization()
  const state = organization.data && stateOf(organization.data)
  const hasPayments = usePaymentLimits() !== null
  return (
    <Page title="Overview" lead={state && <Badge tone={state.tone}>{state.text}</Badge>}>
      <Loaded resource={organization}>
        {(record) => (
          <Tiles organization={record}>
            <FirstSteps organization={record} />
          </Tiles>
        )}
      </Loaded>
      {hasPayments && <OpenPayments />}
      <Failures />
    </Page>
  )
}

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

export const OwnStatement = () => {
  const own = useMembership()
  return own === undefined ? null : <Statement id={own.id} />
}
