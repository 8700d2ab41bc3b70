import type { ComponentProps } from "preact"
import { CheckField, numberOf, SelectField, TextField, textOf, UsdField } from "../../parts/Field.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { changesOf, decimalOf, localMinuteOf, typedOf } from "./Fields.ts"
import type { IssuedKey, Key, Organization } from "./records.ts"

const allScopes = ["chat", "images", "videos"]

const periods = [
  ["day", "a day"],
  ["week", "a week"],
  ["month", "a month"],
  ["total", "in all"]
] as const

interface KeyFields {
  readonly name: string
  readonly scopes: ReadonlyArray<string> | null
  readonly rpm: number | null
  readonly cap_usd: string | null
  /** Undefined without a cap. */
  readonly cap_period: string | undefined
  readonly expires_at: number | null
}

const nothing: KeyFields = {
  name: "",
  scopes: null,
  rpm: null,
  cap_usd: null,
  cap_period: undefined,
  expires_at: null
}

const minuteSeconds = 60

const presentOf = (key: Key): KeyFields => ({
  name: typedOf(key.name),
  scopes: key.scopes,
  rpm: key.rpm,
  cap_usd: key.cap_usd === null ? null : decimalOf(key.cap_usd),
  cap_period: key.cap_period ?? undefined,
  expires_at: key.expires_at === null ? null : key.expires_at - (key.expires_at % minuteSeconds)
})

const enteredIn = (form: FormData): KeyFields => {
  const scopes = allScopes.filter((scope) => form.getAll("scopes").includes(scope))
  const cap_usd = textOf(form, "cap_usd") ?? null
  const expires = textOf(form, "expires_at")
  return {
    name: textOf(form, "name") ?? "",
    scopes: scopes.length === allScopes.length ? null : scopes,
    rpm: numberOf(form, "rpm") ?? null,
    cap_usd,
    cap_period: cap_usd === null ? undefined : textOf(form, "cap_period"),
    expires_at: expires === undefined ? null : Math.floor(Date.parse(expires) / 1000)
  }
}

const Fields = ({ present }: { readonly present?: KeyFields }) => (
  <>
    <TextField name="name" label="Name" value={present?.name ?? ""} />
    <fieldset class="checks">
      <legend>May call</legend>
      {allScopes.map((scope) => (
        <CheckField
          key={scope}
          name="scopes"
          label={scope}
          value={scope}
          checked={present?.scopes?.includes(scope) ?? true}
        />
      ))}
    </fieldset>
    <TextField
      name="rpm"
      label="Requests a minute"
      hint="The gateway's own limit, if left empty."
      inputMode="numeric"
      pattern="\d+"
      title="A whole number"
      value={present?.rpm?.toString() ?? ""}
    />
    <div class="pair">
      <UsdField name="cap_usd" label="May spend, in USD" hint="No cap, if left empty." value={present?.cap_usd ?? ""} />
      <SelectField name="cap_period" label="Period (UTC)" options={periods} value={present?.cap_period ?? "month"} />
    </div>
    <TextField
      name="expires_at"
      label="Expires"
      hint="Never, if left empty."
      type="datetime-local"
      value={present?.expires_at ? localMinuteOf(present.expires_at) : ""}
    />
  </>
)

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
    body={(form) => ({
      organization: organization.id,
      ...changesOf(nothing, enteredIn(form))
    })}
    onDone={onDone}
  >
    <Fields />
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
    body={(form) => changesOf(presentOf(of), enteredIn(form))}
    onDone={onDone}
  >
    <Fields present={presentOf(of)} />
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
