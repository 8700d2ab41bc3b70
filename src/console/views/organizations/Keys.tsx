import type { ComponentProps } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { type Pages, usePages } from "../../api/useResource.ts"
import { SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { toast } from "../../parts/Feedback.tsx"
import { numberOf, SelectField } from "../../parts/Field.tsx"
import { changesIn, InputFields, inputColumns, inputs } from "../../parts/InputFields.tsx"
import { Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, PagedTable, useActions } from "../../parts/Table.tsx"
import { Long, Time, Usd } from "../../parts/Values.tsx"
import type { ChangedKey, IssuedKey, Key, Organization } from "./records.ts"
import { CapAmount } from "./Tiles.tsx"

/** Loads a list anew when money has moved, unless its reader went on to further pages. */
export const useFresh = <Row,>(
  pages: Pages<Row>,
  { balance_usd, held_usd }: Organization,
  limit: number
): Pages<Row> => {
  const money = `${balance_usd} ${held_usd}`
  const shown = useRef(money)
  useEffect(() => {
    if (shown.current !== money && pages.rows.length <= limit) pages.refresh()
    shown.current = money
  }, [money])
  return pages
}

const CreateKey = ({
  onDone,
  organization
}: {
  readonly organization: Organization
  readonly onDone: (key: IssuedKey) => void
}) => (
  <WriteButton<IssuedKey>
    label="Create key"
    title={`Create a key of ${organization.name}`}
    action="Create"
    path="/keys"
    body={(form) => ({ organization: organization.id, ...changesIn(inputs.key, form) })}
    onDone={onDone}
  >
    <InputFields inputs={inputs.key} />
  </WriteButton>
)

interface Of<A> {
  readonly of: Key
  readonly onDone: (answer: A) => void
}

/** The dialog of a change in the row of a key. */
const Change = <A,>({
  label,
  of: { id, name },
  path = "",
  title = `${label} the key ${name || id}?`,
  ...dialog
}: Omit<ComponentProps<typeof WriteButton<A>>, "of" | "path"> & {
  readonly of: Key
  /** Below the key's own. */
  readonly path?: string
}) => (
  <WriteButton<A>
    {...dialog}
    isPlain
    label={label}
    of={name || id}
    title={title}
    path={`/keys/${encodeURIComponent(id)}${path}`}
  />
)

const EditKey = ({ of, onDone }: Of<Key>) => (
  <Change<ChangedKey>
    of={of}
    label="Edit"
    title={`Edit the key ${of.name || of.id}`}
    action="Save"
    method="PATCH"
    body={(form) => changesIn(inputs.key, form, of)}
    onDone={(key) => {
      for (const warning of key.warnings ?? []) toast(warning)
      onDone(key)
    }}
  >
    <InputFields inputs={inputs.key} record={of} />
  </Change>
)

const graces = [
  ["", "stops working at once"],
  ["3600", "works for 1 hour"],
  ["86400", "works for 24 hours"],
  ["604800", "works for 7 days"]
] as const

const ReissueKey = ({ of, onDone }: Of<IssuedKey>) => (
  <Change<IssuedKey>
    of={of}
    label="Reissue"
    isDangerous
    path="/reissue"
    body={(form) => ({ grace_seconds: numberOf(form, "grace_seconds") ?? null })}
    onDone={onDone}
  >
    <p>The key gets a new secret. One that an earlier reissue has left valid stops working at once.</p>
    <SelectField name="grace_seconds" label="The old secret" options={graces} value="" />
  </Change>
)

const RevokeKey = ({ of, onDone }: Of<Key>) => (
  <Change<Key>
    of={of}
    label="Revoke"
    isDangerous
    path="/revoke"
    done={`The key ${of.name || of.id} is revoked.`}
    onDone={onDone}
  >
    <p>The key is refused from now on, for good.</p>
  </Change>
)

const listed = 20

const stateOf = ({ cap_usd, expires_at, revoked_at, spent_usd }: Key): Status => {
  if (revoked_at !== null) return { text: "revoked", tone: "soft" }
  if (expires_at !== null && expires_at <= Date.now() / 1000) return { text: "expired", tone: "soft" }
  return cap_usd !== null && spent_usd >= cap_usd
    ? { text: "cap reached", tone: "warn" }
    : { text: "live", tone: "good" }
}

const Name = ({ hint, name, previous_expires_at }: Key) => (
  <div>
    <Long text={name || "no name"} />
    {hint !== null && (
      <>
        <br />
        <code class="soft">ggw_{hint}…</code>
      </>
    )}
    {previous_expires_at !== null && (
      <small class="soft">
        <br />
        old secret until <Time at={previous_expires_at} />
      </small>
    )}
  </div>
)

const Spent = ({ cap_period, cap_usd, spent_usd }: Key) => (
  <div>
    <Usd amount={spent_usd} />
    {cap_usd !== null && (
      <>
        {" "}
        <CapAmount cap={cap_usd} period={cap_period} />
        <progress max={1} value={cap_usd === 0 ? 1 : Math.min(1, spent_usd / cap_usd)} aria-label="Spent of the cap" />
      </>
    )}
  </div>
)

const columns: ReadonlyArray<Column<Key>> = [
  { title: "Key", kind: "custom", value: (key) => <Name {...key} /> },
  { title: "State", kind: "status", value: stateOf },
  { title: "Spent", kind: "custom", value: (key) => <Spent {...key} /> },
  ...inputColumns<Key>(inputs.key),
  { title: "Last used", kind: "custom", value: ({ last_used_at }) => <Time at={last_used_at} ago /> }
]

/** As a part of a view, or as a view of its own. */
export const Keys = ({
  frame: Frame = Section,
  organization
}: {
  readonly organization: Organization
  readonly frame?: typeof Section
}) => {
  const [isAll, setAll] = useState(false)
  const [issued, setIssued] = useState<IssuedKey>()
  const query = { organization: organization.id, state: isAll ? undefined : "live" }
  const keys = useFresh(usePages<Key>("/keys", query, listed), organization, listed)
  const isOpen = organization.deleted_at === undefined
  const onIssued = (key: IssuedKey) => {
    setIssued(key)
    keys.refresh()
  }
  const shown = useActions(
    columns,
    (key) =>
      key.revoked_at === null && (
        <div class="row-actions">
          <EditKey of={key} onDone={keys.refresh} />
          <ReissueKey of={key} onDone={onIssued} />
          <RevokeKey of={key} onDone={keys.refresh} />
        </div>
      ),
    isOpen
  )
  return (
    <Frame
      title="Keys"
      actions={
        <>
          <label class="check">
            <input type="checkbox" checked={isAll} onChange={() => setAll(!isAll)} /> with those that have ended
          </label>
          {isOpen && <CreateKey organization={organization} onDone={onIssued} />}
        </>
      }
    >
      <PagedTable
        label="Keys"
        pages={keys}
        empty={isAll ? "There are no keys." : "There are no keys that work."}
        columns={shown}
      />
      {issued && (
        <SecretDialog title="The key" label="the key" secret={issued.key} onClose={() => setIssued(undefined)}>
          {issued.warnings?.map((warning) => (
            <p key={warning} class="problem">
              {warning}
            </p>
          ))}
        </SecretDialog>
      )}
    </Frame>
  )
}
