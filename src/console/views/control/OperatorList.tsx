import { useState } from "preact/hooks"
import type { CreatedOperator, LinkedOperator } from "../../../http/admin/OperatorResource.ts"
import type { Operator as OperatorSchema } from "../../../services/admin/Operators.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { Copy, SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { SelectField, TextField, textOf } from "../../parts/Fields.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { Time } from "../../parts/Values.tsx"
import { useHasRole, useMembership, useOperatorId } from "../../SignedIn.ts"

type Operator = typeof OperatorSchema.Encoded

/** A new link for an existing operator comes without a token. */
type OperatorWithLink = typeof LinkedOperator.Encoded & Partial<Pick<typeof CreatedOperator.Encoded, "token">>

interface Organization {
  readonly id: string
  readonly name: string | null
}

/** The role that manages others. Members never are owners. */
const useNeededRole = () => (useMembership() === undefined ? "owner" : "write")

const roles = [
  ["read", "Read: view everything"],
  ["write", "Write: also change organizations, credits and routes"],
  ["owner", "Owner: also manage operators and delete organizations"]
] as const

const memberRoles = [
  ["read", "Read: view everything"],
  ["write", "Write: also add credits, and manage keys, webhooks and members"]
] as const

/** The default role is read for operators, and write for members, who otherwise could neither pay nor create keys. */
const InviteFields = ({ organization }: { readonly organization: Organization | undefined }) => {
  const [hasOrganization, setHasOrganization] = useState(organization !== undefined)
  const [chosenRole, setChosenRole] = useState<string>()
  const onInput = ({ target }: Event) => {
    if (target instanceof HTMLInputElement && target.name === "organization") {
      setHasOrganization(target.value.trim() !== "")
    }
    if (target instanceof HTMLSelectElement) setChosenRole(target.value)
  }
  const options = hasOrganization ? memberRoles : roles
  const defaultRole = hasOrganization ? "write" : "read"
  const role = options.some(([option]) => option === chosenRole) ? chosenRole : undefined
  return (
    <div class="field" onInput={onInput}>
      <TextField
        name="name"
        label="Name"
        hint={
          organization === undefined
            ? "Must be unique among operators."
            : "Must be unique in this gateway, for example an email address."
        }
        required
      />
      {organization === undefined && (
        <TextField
          name="organization"
          label="Organization"
          hint="Name or ID. A member sees only this organization and has the role read or write. Leave empty to invite an operator."
        />
      )}
      <SelectField name="role" label="Role" options={options} value={role ?? defaultRole} />
    </div>
  )
}

const Invite = ({
  onDone,
  organization
}: {
  readonly organization: Organization | undefined
  readonly onDone: (operator: OperatorWithLink) => void
}) => (
  <WriteButton<OperatorWithLink>
    role={useNeededRole()}
    label="Invite"
    title={
      organization === undefined
        ? "Invite an operator or a member"
        : `Invite a member of ${organization.name ?? organization.id}`
    }
    action="Create link"
    path="/operators"
    body={(form) => ({
      name: textOf(form, "name"),
      role: textOf(form, "role"),
      organization: organization?.id ?? textOf(form, "organization")
    })}
    onDone={onDone}
  >
    <InviteFields organization={organization} />
  </WriteButton>
)

const pathOf = ({ id }: Operator) => `/operators/${encodeURIComponent(id)}`

const RowActions = ({
  isOwn,
  operator,
  onChange,
  onLink
}: {
  readonly operator: Operator
  /** Whether it is the signed-in operator, who can neither change its own role nor revoke itself. */
  readonly isOwn: boolean
  readonly onLink: (operator: OperatorWithLink) => void
  readonly onChange: () => void
}) => {
  const role = useNeededRole()
  return (
    <div class="row-actions">
      <WriteButton<OperatorWithLink>
        role={role}
        isPlain
        label="New link"
        target={operator.name}
        title={`Create a sign-in link for ${operator.name}`}
        action="Create link"
        path={`${pathOf(operator)}/link`}
        onDone={onLink}
      >
        <p>The link can be used once and expires in 24 hours.</p>
      </WriteButton>
      {!isOwn && (
        <>
          <WriteButton<Operator>
            role={role}
            isPlain
            label="Edit role"
            target={operator.name}
            title={`Edit the role of ${operator.name}`}
            action="Save"
            method="PATCH"
            path={pathOf(operator)}
            body={(form) => ({ role: textOf(form, "role") })}
            onDone={onChange}
          >
            <SelectField
              name="role"
              label="Role"
              options={operator.org === null ? roles : memberRoles}
              value={operator.role}
            />
          </WriteButton>
          <WriteButton<Operator>
            role={role}
            isPlain
            label="Revoke"
            target={operator.name}
            isDangerous
            method="DELETE"
            path={pathOf(operator)}
            onDone={onChange}
          >
            <p>This immediately revokes the token, links and sessions of {operator.name}.</p>
            {operator.org !== null && <p>The API keys of the organization keep working.</p>}
          </WriteButton>
        </>
      )}
    </div>
  )
}

const organizationColumn: Column<Operator> = {
  title: "Organization",
  kind: "text",
  value: ({ org, org_name }) => org_name ?? org
}

const SignInLink = ({ invited, onClose }: { readonly invited: OperatorWithLink; readonly onClose: () => void }) => (
  <SecretDialog title={`Sign-in link for ${invited.name}`} label="the link" secret={invited.link} onClose={onClose}>
    <p>
      Send the link to {invited.name} in a private message. Anyone who opens it signs in as {invited.name}.
    </p>
    <p class="soft">The link can be used once and expires in 24 hours.</p>
    {invited.token && (
      <details>
        <summary>Token for scripts</summary>
        <p>For API calls and later sign-ins. You cannot view it again.</p>
        <Copy label="the token" text={invited.token} />
      </details>
    )}
  </SecretDialog>
)

/** Lists all operators, or the members of one organization. Owners, and members with the role write, manage them. */
export const OperatorList = ({
  canInvite = true,
  frame: Frame = Section,
  organization
}: {
  readonly organization?: Organization
  readonly canInvite?: boolean
  readonly frame?: typeof Section
}) => {
  const operators = useResource<Listed<typeof OperatorSchema>>("/operators", {
    query: { organization: organization?.id }
  })
  const [invited, setInvited] = useState<OperatorWithLink>()
  const ownId = useOperatorId()
  const canManage = useHasRole(useNeededRole())
  const onLink = (operator: OperatorWithLink) => {
    setInvited(operator)
    operators.refresh()
  }
  const title = organization === undefined ? "Operators" : "Members"
  const columns: ReadonlyArray<Column<Operator>> = [
    { title: "Name", kind: "text", value: ({ id, name }) => (id === ownId ? `${name} (you)` : name) },
    { title: "Role", kind: "text", value: ({ role }) => role },
    ...(organization === undefined ? [organizationColumn] : []),
    {
      title: "State",
      kind: "status",
      value: ({ revoked_at }) =>
        revoked_at === null ? { text: "active", tone: "good" } : { text: "revoked", tone: "soft" }
    },
    {
      title: "Last seen",
      kind: "custom",
      isLabelled: true,
      value: ({ used_at }) => (used_at === null ? <span class="soft">never</span> : <Time at={used_at} isRelative />)
    },
    { title: "Created", kind: "time", isLabelled: true, value: ({ created_at }) => created_at }
  ]
  const actions: Column<Operator> = {
    title: "Actions",
    kind: "custom",
    value: (operator) =>
      operator.revoked_at === null && (
        <RowActions operator={operator} isOwn={operator.id === ownId} onLink={onLink} onChange={operators.refresh} />
      )
  }
  return (
    <Frame title={title} actions={canInvite && <Invite organization={organization} onDone={onLink} />}>
      <Loaded resource={operators}>
        {({ data }) => (
          <Table
            label={title}
            empty="No members yet."
            rows={data}
            columns={canManage ? [...columns, actions] : columns}
          />
        )}
      </Loaded>
      {invited && <SignInLink invited={invited} onClose={() => setInvited(undefined)} />}
    </Frame>
  )
}

/** The members of the signed-in member's organization. */
export const OwnMembers = () => {
  const own = useMembership()
  return own === undefined ? null : <OperatorList organization={own} frame={Page} />
}
