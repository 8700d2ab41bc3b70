import { useId } from "preact/hooks"
import type { TopUpRecord } from "../../../services/admin/CreditChanges.ts"
import type { Entry } from "../../../services/ledger/Entry.ts"
import { usePages, useResource } from "../../api/useResource.ts"
import { formatUsd } from "../../format/Amount.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded, toast } from "../../parts/Feedback.tsx"
import { CheckField, TextField, textOf, UsdField } from "../../parts/Field.tsx"
import { changesIn, InputFields, inputs, typedOf } from "../../parts/InputFields.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useRole } from "../../Session.ts"
import { holdColumns, type OpenHold } from "../holds/Holds.tsx"
import { entryColumns } from "../ledger/Ledger.tsx"
import { type EndpointRecord, Endpoints } from "../webhooks/Endpoints.tsx"
import { Keys, useFresh } from "./Keys.tsx"
import { stateOf } from "./Organizations.tsx"
import type { ChangedOrganization, ListedEntry, Organization } from "./records.ts"
import { Tiles } from "./Tiles.tsx"

/** The form is sent only with one of the answers. */
const ConfirmField = ({ answers, label }: { readonly label: string; readonly answers: ReadonlyArray<string> }) => {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        required
        autocomplete="off"
        onInput={({ currentTarget }) =>
          currentTarget.setCustomValidity(answers.includes(currentTarget.value.trim()) ? "" : `${label}.`)
        }
      />
    </div>
  )
}

interface Of {
  readonly organization: Organization
  readonly onDone: () => void
}

const pathOf = ({ id }: Organization) => `/organizations/${encodeURIComponent(id)}`

const Available = ({ organization }: Pick<Of, "organization">) => (
  <p class="soft">
    Available now: <Usd amount={organization.available_usd} />
  </p>
)

const TopUp = ({ onDone, organization }: Of) => (
  <WriteButton<typeof TopUpRecord.Encoded>
    label="Top up"
    title={`Top up ${organization.name}`}
    path="/credits"
    body={(form) => ({
      organization: organization.id,
      type: "top_up",
      amount_usd: textOf(form, "amount_usd"),
      ref: textOf(form, "ref"),
      note: textOf(form, "note")
    })}
    onDone={({ amount_usd, replayed }) => {
      toast(
        replayed
          ? "This payment was entered before; nothing was added now."
          : `${formatUsd(amount_usd)} were added to ${organization.name}.`
      )
      onDone()
    }}
  >
    <Available organization={organization} />
    <UsdField name="amount_usd" label="Amount in USD" required />
    <TextField name="ref" label="Reference" hint="The payment's own; the same one is never added twice." />
    <TextField name="note" label="Note" />
  </WriteButton>
)

const Adjust = ({ onDone, organization }: Of) => {
  const isOwner = useRole("owner")
  return (
    <WriteButton<typeof Entry.Encoded>
      label="Adjust"
      title={`Adjust the balance of ${organization.name}`}
      path="/credits"
      body={(form) => ({
        organization: organization.id,
        type: "adjustment",
        amount_usd: textOf(form, "amount_usd"),
        note: textOf(form, "note"),
        force: form.has("force") || undefined
      })}
      onDone={({ amount_usd }) => {
        toast(`The balance of ${organization.name} was changed by ${formatUsd(amount_usd)}.`)
        onDone()
      }}
    >
      <Available organization={organization} />
      <UsdField name="amount_usd" label="Amount in USD" hint="Below zero takes away, such as -2.50." required />
      <TextField name="note" label="Note" hint="Why, for the ledger." required />
      {isOwner && <CheckField name="force" label="Even if less than nothing is left" />}
    </WriteButton>
  )
}

const Edit = ({ onDone, organization }: Of) => (
  <WriteButton<ChangedOrganization>
    label="Edit"
    title={`Edit ${organization.name}`}
    action="Save"
    method="PATCH"
    path={pathOf(organization)}
    body={(form) => changesIn(inputs.organization, form, organization)}
    onDone={({ warnings = [] }) => {
      for (const warning of warnings) toast(warning)
      onDone()
    }}
  >
    <InputFields inputs={inputs.organization} record={organization} />
  </WriteButton>
)

const Delete = ({ onDone, organization }: Of) => (
  <WriteButton<Organization>
    role="owner"
    label="Delete"
    title={`Delete ${organization.name}?`}
    isDangerous
    method="DELETE"
    path={pathOf(organization)}
    onDone={onDone}
  >
    <p>Its keys are revoked for good and its name is free again. Its ledger stays.</p>
    <ConfirmField
      label={`Type its name or ${organization.id}`}
      answers={[typedOf(organization.name), organization.id]}
    />
  </WriteButton>
)

/** What operators may do with an organization; nothing with a deleted one. */
const Actions = ({ onDone, organization }: Of) =>
  organization.deleted_at === undefined ? (
    <>
      <TopUp organization={organization} onDone={onDone} />
      <Adjust organization={organization} onDone={onDone} />
      <Edit organization={organization} onDone={onDone} />
      {organization.suspended ? (
        <WriteButton<Organization>
          key="resume"
          label="Resume"
          title={`Resume ${organization.name}?`}
          path={`${pathOf(organization)}/resume`}
          onDone={onDone}
        >
          <p>Its keys work again.</p>
        </WriteButton>
      ) : (
        <WriteButton<Organization>
          key="suspend"
          label="Suspend"
          title={`Suspend ${organization.name}?`}
          isDangerous
          path={`${pathOf(organization)}/suspend`}
          onDone={onDone}
        >
          <p>All its keys are refused from now on, until it is resumed. What runs already is finished and charged.</p>
        </WriteButton>
      )}
      <Delete organization={organization} onDone={onDone} />
    </>
  ) : null

const OpenHolds = ({ organization }: { readonly organization: Organization }) => {
  const query = { organization: organization.id, state: "open" }
  const holds = useFresh(usePages<OpenHold>("/ledger/holds", query, listed), organization, listed)
  return (
    <Section
      title="Open holds"
      actions={<a href={link(["holds"], { organization: organization.id })}>All open holds</a>}
    >
      <PagedTable label="Open holds" pages={holds} empty="Nothing is held." columns={holdColumns} />
    </Section>
  )
}

const everySeconds = 10
const listed = 10

const Details = ({ organization }: { readonly organization: Organization }) => (
  <Section title="Details">
    <Facts>
      <Fact name="Id" code={organization.id} />
      <Fact name="Created" at={organization.created_at} />
      {organization.deleted_at !== undefined && <Fact name="Deleted" at={organization.deleted_at} />}
      <Fact name="Webhooks are told below" usd={organization.notify_below_usd} />
      <Fact name="Short of credits">{organization.fit_holds ? "chats run with a lower cap" : "chats are refused"}</Fact>
    </Facts>
  </Section>
)

const Known = ({ organization, refresh }: { readonly organization: Organization; readonly refresh: () => void }) => {
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
        <PagedTable label="Entries" pages={entries} empty="No money has moved yet." columns={entryColumns} />
      </Section>
      <OpenHolds organization={organization} />
      <Endpoints endpoints={endpoints} of={organization} />
      <Details organization={organization} />
    </Page>
  )
}

export const OrganizationPage = ({ id }: { readonly id: string }) => {
  const organization = useResource<Organization>(`/organizations/${encodeURIComponent(id)}`, { everySeconds })
  return (
    <>
      {organization.data === undefined && <Page title="Organization">{null}</Page>}
      <Loaded resource={organization}>
        {(record) => <Known organization={record} refresh={organization.refresh} />}
      </Loaded>
    </>
  )
}
