import { useState } from "preact/hooks"
import type { CreatedEndpoint, NamedDelivery, NamedEndpoint } from "../../../http/admin/Webhooks.ts"
import type { Pages } from "../../api/useResource.ts"
import { SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { TextField, textOf } from "../../parts/Field.tsx"
import { Section } from "../../parts/Page.tsx"
import type { Column } from "../../parts/Table.tsx"
import { organizationColumn, PagedTable, useActions } from "../../parts/Table.tsx"
import { Internal } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useMembership } from "../../Session.ts"
import type { Organization } from "../organizations/records.ts"

export type EndpointRecord = typeof NamedEndpoint.Encoded
type IssuedEndpoint = typeof CreatedEndpoint.Encoded
export type DeliveryRecord = typeof NamedDelivery.Encoded

const columns: ReadonlyArray<Column<EndpointRecord>> = [
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
      disabled_at === null ? { text: "enabled", tone: "good" } : { text: "disabled by a 410", tone: "bad" }
  },
  { title: "Pending", kind: "number", value: ({ pending }) => pending },
  { title: "Last failure", kind: "text", value: ({ failure }) => failure },
  { title: "Failed at", kind: "time", value: ({ failed_at }) => failed_at }
]

const ownColumns = columns.filter((column) => column !== organizationColumn)

const Actions = ({ endpoint: { disabled_at, id, url }, onDone }: { endpoint: EndpointRecord; onDone: () => void }) => (
  <div class="row-actions">
    {disabled_at !== null && (
      <WriteButton
        isPlain
        label="Enable"
        of={url}
        title="Enable this endpoint?"
        path={`/webhooks/${encodeURIComponent(id)}/enable`}
        onDone={onDone}
      >
        <p>Events are sent to it again. It was disabled because it answered 410.</p>
      </WriteButton>
    )}
    <WriteButton
      isPlain
      label="Remove"
      of={url}
      title="Remove this endpoint?"
      isDangerous
      method="DELETE"
      path={`/webhooks/${encodeURIComponent(id)}`}
      done="The endpoint is removed."
      onDone={onDone}
    >
      <p>
        <code>{url}</code> gets no more events, and everything that was written for it is gone.
      </p>
    </WriteButton>
  </div>
)

const Add = ({ onDone, organization }: { organization: string; onDone: (endpoint: IssuedEndpoint) => void }) => {
  const own = useMembership()
  return (
    <WriteButton<IssuedEndpoint>
      label="Add an endpoint"
      action="Add"
      path="/webhooks"
      body={(form) => ({ organization: own?.id ?? textOf(form, "organization"), url: textOf(form, "url") })}
      onDone={onDone}
    >
      <Internal>
        {() => (
          <TextField name="organization" label="Organization" hint="Its id or name." value={organization} required />
        )}
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

/** Endpoints of one organization, or all that match. */
export const Endpoints = ({
  endpoints,
  of,
  organization = of?.id ?? ""
}: {
  readonly endpoints: Pages<EndpointRecord>
  readonly of?: Organization
  readonly organization?: string | undefined
}) => {
  const [issued, setIssued] = useState<IssuedEndpoint>()
  const shown = useActions(of === undefined ? columns : ownColumns, (endpoint) => (
    <Actions endpoint={endpoint} onDone={endpoints.refresh} />
  ))
  return (
    <Section
      title={of === undefined ? "Endpoints" : "Webhook endpoints"}
      actions={
        of?.deleted_at === undefined && (
          <Add
            organization={organization}
            onDone={(endpoint) => {
              setIssued(endpoint)
              endpoints.refresh()
            }}
          />
        )
      }
    >
      <PagedTable label="Endpoints" pages={endpoints} empty="There are no endpoints." columns={shown} />
      {issued && (
        <SecretDialog
          title="The endpoint's secret"
          label="the secret"
          secret={issued.secret}
          onClose={() => setIssued(undefined)}
        >
          <p>Its server verifies with it that events come from here.</p>
        </SecretDialog>
      )}
    </Section>
  )
}
