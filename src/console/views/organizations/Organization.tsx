import { usePages } from "../../api/usePages.ts"
import { useResource } from "../../api/useResource.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { Badge, Fact, Facts } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { entryColumns } from "../ledger/Ledger.tsx"
import type { EndpointRecord } from "../webhooks/Endpoints.tsx"
import { Endpoints } from "../webhooks/Endpoints.tsx"
import { Actions } from "./Actions.tsx"
import { Holds } from "./Holds.tsx"
import { Keys } from "./Keys.tsx"
import { stateOf } from "./Organizations.tsx"
import type { ListedEntry, Organization as Record } from "./records.ts"
import { Tiles } from "./Tiles.tsx"
import { useFresh } from "./useFresh.ts"

const everySeconds = 10
const listed = 10

const Details = ({ organization }: { readonly organization: Record }) => (
  <Section title="Details">
    <div class="panel">
      <Facts>
        <Fact name="Id" code={organization.id} />
        <Fact name="Created" at={organization.created_at} />
        {organization.deleted_at !== undefined && <Fact name="Deleted" at={organization.deleted_at} />}
        <Fact name="Webhooks are told below" usd={organization.notify_below_usd} />
        <Fact name="Short of credits">
          {organization.fit_holds ? "chats run with a lower cap" : "chats are refused"}
        </Fact>
      </Facts>
    </div>
  </Section>
)

const Known = ({ organization, refresh }: { readonly organization: Record; readonly refresh: () => void }) => {
  const { id, name } = organization
  const entries = useFresh(usePages<ListedEntry>("/ledger", { organization: id }, listed), organization, listed)
  const endpoints = usePages<EndpointRecord>("/webhooks", { organization: id }, listed)
  const { text, tone } = stateOf(organization)
  return (
    <Page
      title={name}
      lead={<Badge tone={tone}>{text}</Badge>}
      actions={<Actions organization={organization} onDone={refresh} />}
    >
      <p class="links">
        <a href={link(["requests"], { organization: id })}>Requests</a>{" "}
        <a href={link(["usage"], { organization: id })}>Usage</a> <a href={link(["statements", id])}>Statement</a>{" "}
        <a href={link(["videos"], { organization: id })}>Videos</a>{" "}
        <a href={link(["webhooks"], { organization: id })}>Webhooks</a>{" "}
        <a href={link(["audit"], { organization: id })}>Audit</a>
      </p>
      <Tiles organization={organization} />
      <Keys organization={organization} />
      <Section title="Ledger" actions={<a href={link(["ledger"], { organization: id })}>All entries</a>}>
        <PagedTable
          label="Entries"
          pages={entries}
          empty="No money has moved yet."
          rowKey={({ id: entry }) => entry}
          columns={entryColumns}
        />
      </Section>
      <Holds organization={organization} />
      <Endpoints endpoints={endpoints} of={organization} />
      <Details organization={organization} />
    </Page>
  )
}

export const Organization = ({ id }: { readonly id: string }) => {
  const organization = useResource<Record>(`/organizations/${encodeURIComponent(id)}`, { everySeconds })
  return (
    <>
      {organization.data === undefined && <Page title="Organization">{null}</Page>}
      <Loaded resource={organization}>
        {(record) => <Known organization={record} refresh={organization.refresh} />}
      </Loaded>
    </>
  )
}
