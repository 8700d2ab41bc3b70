import type { ComponentProps } from "preact"
import { inputs } from "../../inputs.ts"
import { changesIn, InputFields } from "../../parts/InputFields.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import type { IssuedKey, Key, Organization } from "./records.ts"

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
  <Change<Key>
    of={of}
    label="Edit"
    title={`Edit the key ${of.name || of.id}`}
    action="Save"
    method="PATCH"
    body={(form) => changesIn(inputs.key, form, of)}
    onDone={onDone}
  >
    <InputFields inputs={inputs.key} record={of} />
  </Change>
)

export const ReissueKey = ({ of, onDone }: Of<IssuedKey>) => (
  <Change<IssuedKey> of={of} label="Reissue" isDangerous path="/reissue" onDone={onDone}>
    <p>The key gets a new secret. The old one stops working at once.</p>
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
