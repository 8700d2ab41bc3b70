import type { ComponentProps } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { findFirstModel, playgroundKey, takesImage, useCallableModels } from "../../api/GatewayClient.ts"
import { type Pages, usePages } from "../../api/useResource.ts"
import { Copy, SecretDialog, WriteButton } from "../../parts/Dialog.tsx"
import { toastWarnings } from "../../parts/Feedback.tsx"
import { changesIn, InputFields, inputColumns, inputs, numberOf, SelectField } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import { Snippets } from "../../parts/Snippets.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, PagedTable, useActions } from "../../parts/Table.tsx"
import { Long, Time, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useBaseUrl, useHasRole } from "../../SignedIn.ts"
import type { ChangedKey, IssuedKey, Key, Organization } from "./records.ts"
import { CapAmount } from "./Tiles.tsx"

/** Refreshes a list if the balance changed, unless the user has loaded more pages. */
export const useBalanceRefresh = <Row,>(
  pages: Pages<Row>,
  { balance_usd, held_usd }: Organization,
  limit: number
): Pages<Row> => {
  const money = `${balance_usd} ${held_usd}`
  const lastMoney = useRef(money)
  useEffect(() => {
    if (lastMoney.current !== money && pages.rows.length <= limit) pages.refresh()
    lastMoney.current = money
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
    title={`Create a key for ${organization.name}`}
    action="Create"
    path="/keys"
    body={(form) => ({ organization: organization.id, ...changesIn(inputs.key, form) })}
    onDone={onDone}
  >
    <InputFields inputs={inputs.key} />
  </WriteButton>
)

interface KeyProps<A> {
  readonly apiKey: Key
  readonly onDone: (answer: A) => void
}

/** A change of a key, with a button in its row. */
const KeyChange = <A,>({
  label,
  apiKey: { id, name },
  path = "",
  title = `${label} the key ${name || id}?`,
  ...dialog
}: Omit<ComponentProps<typeof WriteButton<A>>, "target" | "path"> & {
  readonly apiKey: Key
  /** Appended to the path of the key. */
  readonly path?: string
}) => (
  <WriteButton<A>
    {...dialog}
    isPlain
    label={label}
    target={name || id}
    title={title}
    path={`/keys/${encodeURIComponent(id)}${path}`}
  />
)

const EditKey = ({ apiKey, onDone }: KeyProps<Key>) => (
  <KeyChange<ChangedKey>
    apiKey={apiKey}
    label="Edit"
    title={`Edit the key ${apiKey.name || apiKey.id}`}
    action="Save"
    method="PATCH"
    body={(form) => changesIn(inputs.key, form, apiKey)}
    onDone={(key) => {
      toastWarnings(key.warnings)
      onDone(key)
    }}
  >
    <InputFields inputs={inputs.key} record={apiKey} />
  </KeyChange>
)

const gracePeriods = [
  ["", "Stops working immediately"],
  ["3600", "Works for 1 hour"],
  ["86400", "Works for 24 hours"],
  ["604800", "Works for 7 days"]
] as const

const ReissueKey = ({ apiKey, onDone }: KeyProps<IssuedKey>) => (
  <KeyChange<IssuedKey>
    apiKey={apiKey}
    label="Reissue"
    isDangerous
    path="/reissue"
    body={(form) => ({ grace_seconds: numberOf(form, "grace_seconds") ?? null })}
    onDone={onDone}
  >
    <p>The key gets a new secret. If a secret from before the current one still works, it stops immediately.</p>
    <SelectField name="grace_seconds" label="Current secret" options={gracePeriods} value="" />
  </KeyChange>
)

const RevokeKey = ({ apiKey, onDone }: KeyProps<Key>) => (
  <KeyChange<Key>
    apiKey={apiKey}
    label="Revoke"
    isDangerous
    path="/revoke"
    done={`The key ${apiKey.name || apiKey.id} is revoked.`}
    onDone={onDone}
  >
    <p>The key stops working immediately. You cannot undo this.</p>
  </KeyChange>
)

/** Shows how to call the gateway with a new key: its address, and code for a model that the key can use. */
const FirstRequest = ({ apiKey, issuedKey }: { readonly apiKey: string; readonly issuedKey: IssuedKey }) => {
  const models = useCallableModels()
  const model = findFirstModel(models, issuedKey)
  return (
    <>
      <p>Base URL</p>
      <Copy label="the base URL" text={useBaseUrl()} />
      {models.length > 0 && model === undefined && (
        <p class="problem">This key cannot call any available model. Change its scopes or models.</p>
      )}
      {model && <Snippets model={model.id} surface={model.surface} apiKey={apiKey} />}
      {model && takesImage(model) && (
        <p class="soft">
          If this model requires a reference image, add the field <code>image</code>.
        </p>
      )}
      <p class="links">
        <a href={link(["playground"], { model: model?.id })} onClick={() => playgroundKey.set(apiKey)}>
          Use the key in the playground
        </a>
        <a href="docs" target="_blank" rel="noreferrer">
          Documentation
        </a>
      </p>
    </>
  )
}

const pageSize = 20

const stateOf = ({ cap_usd, expires_at, revoked_at, spent_usd }: Key): Status => {
  if (revoked_at !== null) return { text: "revoked", tone: "soft" }
  if (expires_at !== null && expires_at <= Date.now() / 1000) return { text: "expired", tone: "soft" }
  return cap_usd !== null && spent_usd >= cap_usd
    ? { text: "cap reached", tone: "warn" }
    : { text: "active", tone: "good" }
}

const Name = ({ hint, name, previous_expires_at }: Key) => (
  <div>
    <Long text={name || "Unnamed"} />
    {hint !== null && (
      <>
        <br />
        <code class="soft">ggw_{hint}…</code>
      </>
    )}
    {previous_expires_at !== null && (
      <small class="soft">
        <br />
        old secret valid until <Time at={previous_expires_at} />
      </small>
    )}
  </div>
)

const Spent = ({ cap_period, cap_usd, spent_usd }: Key) => (
  <>
    <Usd amount={spent_usd} />
    {cap_usd !== null && (
      <>
        {" "}
        <CapAmount cap={cap_usd} period={cap_period} />
        <progress max={1} value={cap_usd === 0 ? 1 : Math.min(1, spent_usd / cap_usd)} aria-label="Spending cap used" />
      </>
    )}
  </>
)

const columns: ReadonlyArray<Column<Key>> = [
  { title: "Key", kind: "custom", value: (key) => <Name {...key} /> },
  { title: "State", kind: "status", value: stateOf },
  { title: "Spent", kind: "custom", isLabelled: true, value: (key) => <Spent {...key} /> },
  ...inputColumns<Key>(inputs.key),
  {
    title: "Last used",
    kind: "custom",
    isLabelled: true,
    value: ({ last_used_at }) => (last_used_at === null ? null : <Time at={last_used_at} isRelative />)
  }
]

/** A section of the organization's view, or a view of its own if `frame` is `Page`. */
export const Keys = ({
  frame: Frame = Section,
  organization
}: {
  readonly organization: Organization
  readonly frame?: typeof Section
}) => {
  const [hasInactive, setHasInactive] = useState(false)
  const [issuedKey, setIssuedKey] = useState<IssuedKey>()
  const query = { organization: organization.id, state: hasInactive ? undefined : "live" }
  const keys = useBalanceRefresh(usePages<Key>("/keys", query, pageSize), organization, pageSize)
  const canChange = organization.deleted_at === undefined
  const canWrite = useHasRole("write")
  const onIssued = (key: IssuedKey) => {
    setIssuedKey(key)
    keys.refresh()
  }
  const columnsWithActions = useActions(
    columns,
    (key) =>
      key.revoked_at === null && (
        <div class="row-actions">
          <EditKey apiKey={key} onDone={keys.refresh} />
          <ReissueKey apiKey={key} onDone={onIssued} />
          <RevokeKey apiKey={key} onDone={keys.refresh} />
        </div>
      ),
    canChange
  )
  return (
    <Frame
      title="Keys"
      actions={
        <>
          <label class="check">
            <input type="checkbox" checked={hasInactive} onChange={() => setHasInactive(!hasInactive)} /> Show inactive
            keys
          </label>
          {canChange && <CreateKey organization={organization} onDone={onIssued} />}
        </>
      }
    >
      {!canWrite && <p class="soft">To create keys, you need the write role.</p>}
      <PagedTable
        label="Keys"
        pages={keys}
        empty={hasInactive ? "No keys yet." : "No active keys."}
        columns={columnsWithActions}
      />
      {issuedKey && (
        <SecretDialog
          title="Your new key"
          label="the key"
          secret={issuedKey.key}
          onClose={() => setIssuedKey(undefined)}
        >
          {issuedKey.warnings?.map((warning) => (
            <p key={warning} class="problem">
              {warning}
            </p>
          ))}
          {organization.available_usd <= 0 && (
            <p class="problem">The balance is empty. Add credits before the first request.</p>
          )}
          {issuedKey.key !== null && <FirstRequest apiKey={issuedKey.key} issuedKey={issuedKey} />}
        </SecretDialog>
      )}
    </Frame>
  )
}
