import { useState } from "preact/hooks"
import type { CreatedEndpoint, NamedDelivery, NamedEndpoint } from "../../../http/admin/WebhookResource.ts"
import { type Pages, usePages } from "../../api/useResource.ts"
import { useRoute } from "../../BrowserState.ts"
import { SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { TextField, textOf } from "../../parts/Fields.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, organizationColumn, PagedTable, useActions } from "../../parts/Table.tsx"
import { Internal } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useMembership } from "../../SignedIn.ts"
import type { Organization } from "../organizations/records.ts"

export type EndpointRecord = typeof NamedEndpoint.Encoded
type IssuedEndpoint = typeof CreatedEndpoint.Encoded
type DeliveryRecord = typeof NamedDelivery.Encoded

const endpointColumns: ReadonlyArray<Column<EndpointRecord>> = [
  {
    title: "URL",
    kind: "custom",
    value: ({ id, url }) => (
      <a href={link(["webhooks"], { endpoint: id })}>
        <code>{url}</code>
      </a>
    )
  },
  organizationColumn,
  {
    title: "State",
    kind: "status",
    value: ({ disabled_at }) =>
      disabled_at === null ? { text: "enabled", tone: "good" } : { text: "disabled after 410", tone: "bad" }
  },
  { title: "Pending", kind: "number", value: ({ pending }) => pending },
  { title: "Last failure", kind: "text", value: ({ failure }) => failure },
  { title: "Failed at", kind: "time", value: ({ failed_at }) => failed_at }
]

const ownColumns = endpointColumns.filter((column) => column !== organizationColumn)

const Actions = ({ endpoint: { disabled_at, id, url }, onDone }: { endpoint: EndpointRecord; onDone: () => void }) => (
  <div class="row-actions">
    {disabled_at !== null && (
      <WriteButton
        isPlain
        label="Enable"
        target={url}
        title="Enable this endpoint?"
        path={`/webhooks/${encodeURIComponent(id)}/enable`}
        onDone={onDone}
      >
        <p>The endpoint was disabled because it returned 410. It will receive events again.</p>
      </WriteButton>
    )}
    <WriteButton
      isPlain
      label="Remove"
      target={url}
      title="Remove this endpoint?"
      isDangerous
      method="DELETE"
      path={`/webhooks/${encodeURIComponent(id)}`}
      done="Endpoint removed."
      onDone={onDone}
    >
      <p>
        <code>{url}</code> will receive no more events, and its deliveries will be deleted.
      </p>
    </WriteButton>
  </div>
)

const Add = ({ onDone, organization }: { organization: string; onDone: (endpoint: IssuedEndpoint) => void }) => {
  const own = useMembership()
  return (
    <WriteButton<IssuedEndpoint>
      label="Add endpoint"
      action="Add"
      path="/webhooks"
      body={(form) => ({ organization: own?.id ?? textOf(form, "organization"), url: textOf(form, "url") })}
      onDone={onDone}
    >
      <Internal>
        {() => <TextField name="organization" label="Organization" hint="Name or ID." value={organization} required />}
      </Internal>
      <TextField
        name="url"
        label="URL"
        hint="http or https, on a public host."
        inputMode="url"
        placeholder="https://…"
        required
      />
    </WriteButton>
  )
}

/** The endpoints of one organization, or all that match the filters. */
export const Endpoints = ({
  endpoints,
  owner,
  organization = owner?.id ?? ""
}: {
  readonly endpoints: Pages<EndpointRecord>
  readonly owner?: Organization
  readonly organization?: string | undefined
}) => {
  const [issuedEndpoint, setIssuedEndpoint] = useState<IssuedEndpoint>()
  const columnsWithActions = useActions(owner === undefined ? endpointColumns : ownColumns, (endpoint) => (
    <Actions endpoint={endpoint} onDone={endpoints.refresh} />
  ))
  return (
    <Section
      title={owner === undefined ? "Endpoints" : "Webhook endpoints"}
      actions={
        owner?.deleted_at === undefined && (
          <Add
            organization={organization}
            onDone={(endpoint) => {
              setIssuedEndpoint(endpoint)
              endpoints.refresh()
            }}
          />
        )
      }
    >
      <PagedTable label="Endpoints" pages={endpoints} empty="No endpoints." columns={columnsWithActions} />
      {issuedEndpoint && (
        <SecretDialog
          title="Signing secret"
          label="the secret"
          secret={issuedEndpoint.secret}
          onClose={() => setIssuedEndpoint(undefined)}
        >
          <p>Your server uses it to verify that events come from this gateway.</p>
        </SecretDialog>
      )}
    </Section>
  )
}

const tones: Readonly<Record<DeliveryRecord["state"], Tone>> = { pending: "warn", delivered: "good", failed: "bad" }

const columns: ReadonlyArray<Column<DeliveryRecord>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  {
    title: "Event",
    kind: "custom",
    narrow: "main",
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
    title: "Last response",
    kind: "text",
    value: ({ failure, status }) => [status, failure].filter((part) => part !== null).join(" ") || null
  },
  { title: "Next try", kind: "time", value: ({ next_at }) => next_at }
]

const Deliveries = ({ deliveries }: { readonly deliveries: Pages<DeliveryRecord> }) => {
  const columnsWithActions = useActions(columns, ({ id }) => (
    <WriteButton
      isPlain
      label="Replay"
      target={id}
      title="Replay this event?"
      path={`/webhooks/deliveries/${encodeURIComponent(id)}/replay`}
      done="The event will be sent again."
      onDone={deliveries.refresh}
    >
      <p>
        The gateway sends the event again to its destinations, except disabled endpoints. The event keeps its ID, so
        your server can tell that it has already received it.
      </p>
    </WriteButton>
  ))
  return (
    <Section title="Deliveries" actions={<button onClick={deliveries.refresh}>Refresh</button>}>
      <PagedTable
        label="Deliveries"
        pages={deliveries}
        nouns="deliveries"
        rowKey={({ endpoint, id, url }) => `${id} ${endpoint} ${url}`}
        columns={columnsWithActions}
      />
    </Section>
  )
}

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID", isInternal: true },
  { kind: "select", name: "state", label: "Deliveries", options: ["pending", "delivered", "failed"] },
  { kind: "text", name: "endpoint", label: "Endpoint", placeholder: "whe_…" }
]

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
