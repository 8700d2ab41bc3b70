import type { ComponentChildren } from "preact"
import { useId, useState } from "preact/hooks"
import { pluralize } from "../../../domain/Wording.ts"
import type { ModelsAnswer } from "../../../http/admin/ModelResource.ts"
import type { TopUpRecord } from "../../../services/admin/CreditChanges.ts"
import type { Entry } from "../../../services/ledger/Entry.ts"
import { usePages, useResource } from "../../api/useResource.ts"
import { discountUsd, formatCount, formatUsd } from "../../format/Amount.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded, toast, toastWarnings } from "../../parts/Feedback.tsx"
import {
  CheckField,
  changesIn,
  InputFields,
  inputs,
  TextField,
  textOf,
  toSingleLine,
  UsdField
} from "../../parts/Fields.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage, Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, PagedTable } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useHasRole } from "../../SignedIn.ts"
import { OperatorList } from "../control/OperatorList.tsx"
import { entryColumns, holdColumns, type OpenHold } from "../ledger/Ledger.tsx"
import { type EndpointRecord, Endpoints } from "../webhooks/Webhooks.tsx"
import { Keys, useBalanceRefresh } from "./Keys.tsx"
import type { ChangedOrganization, ListedEntry, Organization } from "./records.ts"
import { Tiles } from "./Tiles.tsx"

export const stateOf = ({ cap_spent_usd, cap_usd, deleted_at, suspended }: Organization): Status => {
  if (deleted_at !== undefined) return { text: "deleted", tone: "soft" }
  if (suspended) return { text: "suspended", tone: "warn" }
  return cap_usd !== null && cap_spent_usd !== null && cap_spent_usd >= cap_usd
    ? { text: "cap reached", tone: "warn" }
    : { text: "active", tone: "good" }
}

const discount = "discount_percent"
const priceInputs = inputs.organization.filter(({ name }) => name === discount)

type Model = (typeof ModelsAnswer.Encoded)["data"][number]

/** Whether the gateway accepts the discount and it lowers prices. */
const isReduction = (percent: number): boolean => percent > 0 && percent <= 100

/** Returns the prices that cover their cost now and would not with the discount. */
const findDiscountLosses = (models: ReadonlyArray<Model>, percent: number) =>
  models.flatMap(({ routes }) =>
    routes.flatMap(({ id: route, margins }) =>
      margins.flatMap(({ cost_usd, price_usd, unit }) => {
        const discounted = discountUsd(price_usd, percent)
        const isLoss = cost_usd !== null && price_usd >= cost_usd && discounted < cost_usd
        return isLoss ? [{ route, unit, cost: cost_usd, price: discounted }] : []
      })
    )
  )

const maxLosses = 3

/** Asks to confirm a discount. `losses` is undefined if the costs are unknown, because the models are not loaded. */
const DiscountLosses = ({
  losses,
  percent
}: {
  readonly losses: ReturnType<typeof findDiscountLosses> | undefined
  readonly percent: number
}) => (
  <>
    {losses === undefined ? (
      <div class="error-box" role="alert">
        The costs of the models are not loaded. Prices with this discount may be below them.
      </div>
    ) : (
      <div class="error-box losses" role="alert">
        At a discount of {percent} %, {pluralize(losses.length, "price is", "prices are")} below the provider's cost:
        <ul>
          {losses.slice(0, maxLosses).map(({ cost, price, route, unit }) => (
            <li key={`${route} ${unit}`}>
              {route}, {unit}: <Usd amount={price} />, cost <Usd amount={cost} />
            </li>
          ))}
          {losses.length > maxLosses && <li>and {formatCount(losses.length - maxLosses)} more</li>}
        </ul>
      </div>
    )}
    <CheckField name="accepts_losses" label="Sell below cost" required />
  </>
)

/** Fields with a discount. A discount that sells below cost must be confirmed, because the gateway accepts it. */
const DiscountFields = ({
  children,
  current = 0
}: {
  /** The discount of an existing organization, in percent. */
  readonly current?: number
  readonly children: ComponentChildren
}) => {
  /** Undefined until the user types. Another operator may change `current` meanwhile. */
  const [typed, setTyped] = useState<number>()
  const percent = typed ?? current
  const models = useResource<typeof ModelsAnswer.Encoded>("/models").data?.data
  const losses = models && findDiscountLosses(models, percent)
  const mustConfirm = percent !== current && isReduction(percent) && losses?.length !== 0
  const type = ({ target }: Event) => {
    if (target instanceof HTMLInputElement && target.name === discount) setTyped(Number(target.value))
  }
  return (
    <div class="fields" onInput={type}>
      {children}
      {/* The key discards the confirmation of other losses. */}
      {mustConfirm && <DiscountLosses key={`${percent} ${losses?.length}`} losses={losses} percent={percent} />}
    </div>
  )
}

const Create = () => (
  <WriteButton<ChangedOrganization>
    label="Create organization"
    title="Create an organization"
    action="Create"
    path="/organizations"
    body={(form) => ({
      name: textOf(form, "name"),
      credits_usd: textOf(form, "credits_usd"),
      ...changesIn(priceInputs, form)
    })}
    onDone={({ id, warnings }) => {
      toastWarnings(warnings)
      location.hash = link(["organizations", id])
    }}
  >
    <DiscountFields>
      <TextField name="name" label="Name" hint="Must be unique." required />
      <UsdField name="credits_usd" label="Starting credits (USD)" hint="Default: none." />
      <InputFields inputs={priceInputs} />
    </DiscountFields>
  </WriteButton>
)

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "search", label: "Search", isPinned: true, placeholder: "Name or ID" },
  { kind: "select", name: "state", label: "State", options: ["active", "suspended", "deleted"] }
]

const columns: ReadonlyArray<Column<Organization>> = [
  { title: "Name", kind: "link", value: ({ id, name }) => ({ href: link(["organizations", id]), text: name }) },
  { title: "State", kind: "status", value: stateOf },
  { title: "Available", kind: "usd", value: ({ available_usd }) => available_usd },
  { title: "Reserved", kind: "usd", narrow: "hidden", value: ({ held_usd }) => held_usd },
  { title: "Balance", kind: "usd", value: ({ balance_usd }) => balance_usd },
  { title: "Created", kind: "time", narrow: "hidden", value: ({ created_at }) => created_at },
  { title: "ID", kind: "code", value: ({ id }) => id }
]

export const Organizations = () => (
  <ListPage
    title="Organizations"
    actions={<Create />}
    path="/organizations"
    filters={filters}
    nouns="organizations"
    columns={columns}
  />
)

/** Blocks the form until one of the answers is entered. */
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

interface OrganizationProps {
  readonly organization: Organization
  readonly onDone: () => void
}

const pathOf = ({ id }: Organization) => `/organizations/${encodeURIComponent(id)}`

const Available = ({ organization }: Pick<OrganizationProps, "organization">) => (
  <p class="soft">
    Available now: <Usd amount={organization.available_usd} />
  </p>
)

const TopUp = ({ onDone, organization }: OrganizationProps) => (
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
          ? "This reference was already credited. Nothing was added."
          : `Added ${formatUsd(amount_usd)} to ${organization.name}.`
      )
      onDone()
    }}
  >
    <Available organization={organization} />
    <UsdField name="amount_usd" label="Amount (USD)" required />
    <TextField name="ref" label="Reference" hint="The ID of the payment. Each reference is credited only once." />
    <TextField name="note" label="Note" />
  </WriteButton>
)

const Adjust = ({ onDone, organization }: OrganizationProps) => {
  const isOwner = useHasRole("owner")
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
        toast(`Adjusted the balance of ${organization.name} by ${formatUsd(amount_usd)}.`)
        onDone()
      }}
    >
      <Available organization={organization} />
      <UsdField
        name="amount_usd"
        label="Amount (USD)"
        hint="To deduct, use a negative amount such as -2.50."
        required
      />
      <TextField name="note" label="Note" hint="The reason, recorded in the ledger." required />
      {isOwner && <CheckField name="force" label="Allow a negative balance" />}
    </WriteButton>
  )
}

const Edit = ({ onDone, organization }: OrganizationProps) => (
  <WriteButton<ChangedOrganization>
    label="Edit"
    title={`Edit ${organization.name}`}
    action="Save"
    method="PATCH"
    path={pathOf(organization)}
    body={(form) => changesIn(inputs.organization, form, organization)}
    onDone={({ warnings }) => {
      toastWarnings(warnings)
      onDone()
    }}
  >
    <DiscountFields current={organization.discount_percent}>
      <InputFields inputs={inputs.organization} record={organization} />
    </DiscountFields>
  </WriteButton>
)

const Delete = ({ onDone, organization }: OrganizationProps) => (
  <WriteButton<Organization>
    role="owner"
    label="Delete"
    title={`Delete ${organization.name}?`}
    isDangerous
    method="DELETE"
    path={pathOf(organization)}
    onDone={onDone}
  >
    <p>This permanently revokes its keys and makes its name available again. The ledger is kept.</p>
    <ConfirmField
      label={`To confirm, type its name or ${organization.id}`}
      answers={[toSingleLine(organization.name), organization.id]}
    />
  </WriteButton>
)

/** The usual actions of operators. A deleted organization has none. */
const Actions = (change: OrganizationProps) =>
  change.organization.deleted_at === undefined ? (
    <>
      <TopUp {...change} />
      <Adjust {...change} />
      <Edit {...change} />
    </>
  ) : null

/** The actions that stop an organization. They are apart from the others, so that nobody presses them by mistake. */
const StopActions = ({ onDone, organization }: OrganizationProps) =>
  organization.deleted_at === undefined ? (
    <>
      {organization.suspended ? (
        <WriteButton<Organization>
          key="resume"
          label="Resume"
          title={`Resume ${organization.name}?`}
          path={`${pathOf(organization)}/resume`}
          onDone={onDone}
        >
          <p>Its keys will work again.</p>
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
          <p>All its keys are rejected until you resume it. Requests in progress finish and are charged.</p>
        </WriteButton>
      )}
      <Delete organization={organization} onDone={onDone} />
    </>
  ) : null

const OpenHolds = ({ organization }: { readonly organization: Organization }) => {
  const query = { organization: organization.id, state: "open" }
  const holds = useBalanceRefresh(usePages<OpenHold>("/ledger/holds", query, pageSize), organization, pageSize)
  return (
    <Section
      title="Open holds"
      actions={<a href={link(["holds"], { organization: organization.id })}>View all holds</a>}
    >
      <PagedTable label="Open holds" pages={holds} empty="No open holds." columns={holdColumns} />
    </Section>
  )
}

const everySeconds = 10
const pageSize = 10

const Details = ({ onDone, organization }: OrganizationProps) => (
  <Section title="Details" actions={<StopActions organization={organization} onDone={onDone} />}>
    <Facts>
      <Fact name="ID" code={organization.id} />
      <Fact name="Created" at={organization.created_at} />
      {organization.deleted_at !== undefined && <Fact name="Deleted" at={organization.deleted_at} />}
      <Fact name="Low-credits webhook" usd={organization.notify_below_usd} />
      {organization.discount_percent !== 0 && <Fact name="Discount">{`${organization.discount_percent} %`}</Fact>}
      <Fact name="Chat requests above the balance">
        {organization.fit_holds ? "run with a lower output limit" : "are rejected"}
      </Fact>
    </Facts>
  </Section>
)

const OrganizationView = ({
  organization,
  refresh
}: {
  readonly organization: Organization
  readonly refresh: () => void
}) => {
  const { id, name } = organization
  const entries = useBalanceRefresh(
    usePages<ListedEntry>("/ledger", { organization: id }, pageSize),
    organization,
    pageSize
  )
  const endpoints = usePages<EndpointRecord>("/webhooks", { organization: id }, pageSize)
  const { text, tone } = stateOf(organization)
  const isOwner = useHasRole("owner")
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
        <a href={link(["audit"], { organization: id })}>Audit log</a>
      </p>
      <Tiles organization={organization} />
      <Keys organization={organization} />
      <Section title="Ledger" actions={<a href={link(["ledger"], { organization: id })}>View all entries</a>}>
        <PagedTable label="Entries" pages={entries} empty="No entries yet." columns={entryColumns} />
      </Section>
      <OpenHolds organization={organization} />
      <Endpoints endpoints={endpoints} owner={organization} />
      {isOwner && <OperatorList organization={organization} canInvite={organization.deleted_at === undefined} />}
      <Details organization={organization} onDone={refresh} />
    </Page>
  )
}

export const OrganizationPage = ({ id }: { readonly id: string }) => {
  const organization = useResource<Organization>(`/organizations/${encodeURIComponent(id)}`, { everySeconds })
  return (
    <>
      {organization.data === undefined && <Page title="Organization">{null}</Page>}
      <Loaded resource={organization}>
        {(record) => <OrganizationView organization={record} refresh={organization.refresh} />}
      </Loaded>
    </>
  )
}
