import { type Pages, usePages } from "../../api/useResource.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, organizationColumn, PagedTable, useActions } from "../../parts/Table.tsx"
import { type DeliveryRecord, type EndpointRecord, Endpoints } from "./Endpoints.tsx"

const tones: Readonly<Record<DeliveryRecord["state"], Tone>> = { pending: "warn", delivered: "good", failed: "bad" }

const columns: ReadonlyArray<Column<DeliveryRecord>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  {
    title: "Event",
    kind: "custom",
    value: ({ id, type }) => (
      <>
        <div>{type}</div>
        <code class="soft">{id}</code>
      </>
    )
  },
  organizationColumn,
  { title: "URL", kind: "code", value: ({ url }) => url },
  { title: "State", kind: "status", value: ({ state }) => ({ text: state, tone: tones[state] }) },
  { title: "Tries", kind: "number", value: ({ tries }) => tries },
  {
    title: "Last answer",
    kind: "text",
    value: ({ failure, status }) => [status, failure].filter((part) => part !== null).join(" ") || null
  },
  { title: "Next try", kind: "time", value: ({ next_at }) => next_at }
]

const Deliveries = ({ deliveries }: { readonly deliveries: Pages<DeliveryRecord> }) => {
  const shown = useActions(columns, ({ id }) => (
    <WriteButton
      isPlain
      label="Replay"
      of={id}
      title="Send this event again?"
      action="Send again"
      path={`/webhooks/deliveries/${encodeURIComponent(id)}/replay`}
      done="The event is sent again."
      onDone={deliveries.refresh}
    >
      <p>It goes to all its destinations, under the same id, so that a server that has it already can tell.</p>
    </WriteButton>
  ))
  return (
    <Section title="Deliveries" actions={<button onClick={deliveries.refresh}>Refresh</button>}>
      <PagedTable
        label="Deliveries"
        pages={deliveries}
        empty="No delivery matches."
        rowKey={({ endpoint, id, url }) => `${id} ${endpoint} ${url}`}
        columns={shown}
      />
    </Section>
  )
}

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "select", name: "state", label: "Deliveries", options: ["pending", "delivered", "failed"] },
  { kind: "text", name: "endpoint", label: "Endpoint", placeholder: "whe_…" }
]

/** Endpoints, and the deliveries to them. */
export const Webhooks = () => {
  const { endpoint, organization, state } = useRoute().query
  const endpoints = usePages<EndpointRecord>("/webhooks", { organization }, 20)
  const deliveries = usePages<DeliveryRecord>("/webhooks/deliveries", { organization, state, endpoint })
  return (
    <Page title="Webhooks">
      <FilterBar filters={filters} />
      <Endpoints endpoints={endpoints} organization={organization} />
      <Deliveries deliveries={deliveries} />
    </Page>
  )
}
