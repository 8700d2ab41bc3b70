import { useState } from "preact/hooks"
import type { CreatedOperator, LinkedOperator } from "../../../http/admin/Operators.ts"
import type { BlockedRange as BlockedRangeSchema } from "../../../services/access/BlockList.ts"
import type { Operator as OperatorSchema } from "../../../services/admin/Operator.ts"
import { type Listed, usePages, useResource } from "../../api/useResource.ts"
import { Copy, SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { SelectField, TextField, textOf } from "../../parts/Field.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { PagedTable, Table, useActions } from "../../parts/Table.tsx"
import { Time } from "../../parts/Values.tsx"
import { searchOf } from "../../Route.ts"
import { useRole } from "../../Session.ts"
import { Instances } from "./Instances.tsx"

type BlockedRange = typeof BlockedRangeSchema.Encoded

const BlockList = () => {
  const ranges = usePages<BlockedRange>("/blocklist")
  const columns = useActions<BlockedRange>(
    [
      { title: "Range", kind: "code", value: ({ cidr }) => cidr },
      { title: "Since", kind: "time", value: ({ created_at }) => created_at }
    ],
    ({ cidr }) => (
      <WriteButton
        isPlain
        label="Let in"
        of={cidr}
        title={`Let ${cidr} in again?`}
        method="DELETE"
        path={`/blocklist${searchOf({ range: cidr })}`}
        onDone={ranges.refresh}
      />
    )
  )
  return (
    <Section
      title="Block list"
      actions={
        <WriteButton<BlockedRange>
          label="Block"
          title="Block an address or a range"
          isDangerous
          path="/blocklist"
          body={(form) => ({ range: textOf(form, "range") })}
          onDone={ranges.refresh}
        >
          <TextField
            name="range"
            label="Address or range"
            hint="Its requests are refused before anything else, whatever their key."
            placeholder="203.0.113.0/24"
            required
          />
        </WriteButton>
      }
    >
      <PagedTable label="Block list" pages={ranges} empty="Nothing is blocked." columns={columns} />
    </Section>
  )
}

type Operator = typeof OperatorSchema.Encoded

/** The token only of a new one. */
type Linked = typeof LinkedOperator.Encoded & Partial<Pick<typeof CreatedOperator.Encoded, "token">>

const roles = [
  ["read", "read: see everything"],
  ["write", "write: also change customers, money, routes"],
  ["owner", "owner: also manage operators, delete organizations"]
] as const

const Create = ({ onDone }: { readonly onDone: (operator: Linked) => void }) => (
  <WriteButton<Linked>
    role="owner"
    label="Let someone in"
    action="Create"
    path="/operators"
    body={(form) => ({
      name: textOf(form, "name"),
      role: textOf(form, "role"),
      organization: textOf(form, "organization")
    })}
    onDone={onDone}
  >
    <TextField name="name" label="Name" hint="No other operator has it." required />
    <SelectField name="role" label="Role" options={roles} />
    <TextField
      name="organization"
      label="Member of"
      hint="An organization's id or name, whose data alone it then sees, with the role read or write. Empty: an operator of the gateway."
    />
  </WriteButton>
)

const pathOf = ({ id }: Operator) => `/operators/${encodeURIComponent(id)}`

const RowActions = ({
  of,
  onLink,
  onRevoke
}: {
  readonly of: Operator
  readonly onLink: (operator: Linked) => void
  readonly onRevoke: () => void
}) => (
  <div class="row-actions">
    <WriteButton<Linked>
      role="owner"
      isPlain
      label="New link"
      of={of.name}
      title={`Make a link for ${of.name}`}
      action="Make a link"
      path={`${pathOf(of)}/link`}
      onDone={onLink}
    >
      <p>It opens the console once, within 24 hours.</p>
    </WriteButton>
    <WriteButton<Operator>
      role="owner"
      isPlain
      label="Revoke"
      of={of.name}
      isDangerous
      method="DELETE"
      path={pathOf(of)}
      onDone={onRevoke}
    >
      <p>The token, links and sessions of {of.name} end at once.</p>
    </WriteButton>
  </div>
)

const Operators = () => {
  const operators = useResource<Listed<typeof OperatorSchema>>("/operators")
  const [linked, setLinked] = useState<Linked>()
  const onLink = (operator: Linked) => {
    setLinked(operator)
    operators.refresh()
  }
  return (
    <Section title="Operators" actions={<Create onDone={onLink} />}>
      <Loaded resource={operators}>
        {({ data }) => (
          <Table
            label="Operators"
            rows={data}
            columns={[
              { title: "Name", kind: "text", value: ({ name }) => name },
              { title: "Role", kind: "text", value: ({ role }) => role },
              { title: "Member of", kind: "text", value: ({ org, org_name }) => org_name ?? org },
              {
                title: "State",
                kind: "status",
                value: ({ revoked_at }) =>
                  revoked_at === null ? { text: "active", tone: "good" } : { text: "revoked", tone: "soft" }
              },
              { title: "Token last used", kind: "custom", value: ({ used_at }) => <Time at={used_at} ago /> },
              { title: "Created", kind: "time", value: ({ created_at }) => created_at },
              {
                title: "Actions",
                kind: "custom",
                value: (operator) =>
                  operator.revoked_at === null && (
                    <RowActions of={operator} onLink={onLink} onRevoke={operators.refresh} />
                  )
              }
            ]}
          />
        )}
      </Loaded>
      {linked && (
        <SecretDialog
          title={`A link for ${linked.name}`}
          label="the link"
          secret={linked.link}
          onClose={() => setLinked(undefined)}
        >
          <p class="soft">It opens the console once, within 24 hours.</p>
          {linked.token && (
            <>
              <p>And a token, for programs and to sign in again:</p>
              <Copy label="the token" text={linked.token} />
            </>
          )}
        </SecretDialog>
      )}
    </Section>
  )
}

export const Settings = () => (
  <Page title="Settings">
    {useRole("owner") && <Operators />}
    <Instances />
    <BlockList />
  </Page>
)
