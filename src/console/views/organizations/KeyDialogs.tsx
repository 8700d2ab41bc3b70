import type { ComponentProps } from "preact"
import { inputs } from "../../inputs.ts"
import { numberOf, SelectField } from "../../parts/Field.tsx"
import { changesIn, InputFields } from "../../parts/InputFields.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import type { ChangedKey, IssuedKey, Key, Organization } from "./records.ts"

export const CreateKey = ({
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

export const EditKey = ({ of, onDone }: Of<Key>) => (
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

export const ReissueKey = ({ of, onDone }: Of<IssuedKey>) => (
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

export const RevokeKey = ({ of, onDone }: Of<Key>) => (
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
