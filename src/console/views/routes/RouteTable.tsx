import type { CatalogAnswer } from "../../../http/admin/Catalog.ts"
import type { ServedRoute } from "../../../http/admin/Routes.ts"
import type { Resource } from "../../api/useResource.ts"
import { formatCount, formatCounted, formatShare } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { useActions } from "../../parts/columns.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { TextField, textOf } from "../../parts/Field.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, Table } from "../../parts/Table.tsx"
import { Badge, Time } from "../../parts/Values.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { link } from "../../Route.ts"

/** Amounts in USD, moments in Unix seconds. */
type RouteRecord = typeof ServedRoute.Encoded
export type CatalogRecord = typeof CatalogAnswer.Encoded

interface Of {
  readonly route: RouteRecord
  readonly onDone: () => void
}

const Disable = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Disable"
    of={id}
    isDangerous
    path="/routes/disable"
    body={(form) => ({ route: id, note: textOf(form, "note") })}
    done={`${id} gets no new requests.`}
    onDone={onDone}
  >
    <p>Every instance sends it no new requests within two seconds, until it is enabled. What it is doing goes on.</p>
    <TextField name="note" label="Note" hint="Why, for those who find it disabled." />
  </WriteButton>
)

const Enable = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Enable"
    of={id}
    path="/routes/enable"
    body={() => ({ route: id })}
    done={`${id} gets requests again.`}
    onDone={onDone}
  >
    <p>Every instance sends it requests again within two seconds.</p>
  </WriteButton>
)

const Reset = ({ onDone, route: { id } }: Of) => (
  <WriteButton
    isPlain
    label="Reset"
    of={id}
    path="/routes/reset"
    body={() => ({ route: id })}
    done={`The failures of ${id} are forgotten.`}
    onDone={onDone}
  >
    <p>Every instance closes its circuit and forgets its failures within two seconds.</p>
  </WriteButton>
)

const RouteActions = (of: Of) => (
  <div class="row-actions">
    {of.route.disabled_at === null ? <Disable {...of} /> : <Enable {...of} />}
    <Reset {...of} />
  </div>
)

const circuits: Readonly<Record<RouteRecord["circuit"], readonly [text: string, tone: Tone]>> = {
  closed: ["closed", "good"],
  half_open: ["half open", "warn"],
  open: ["open", "bad"]
}

type RouteState = RouteRecord["circuit"] | "disabled"

export const stateOf = ({ circuit, disabled_at }: RouteRecord): RouteState =>
  disabled_at === null ? circuit : "disabled"

const State = ({ route }: { readonly route: RouteRecord }) => {
  const { circuit, disabled_at, in_catalog, instances, note, open_for_organizations, open_until } = route
  if (disabled_at !== null)
    return (
      <>
        <Badge tone="warn">disabled</Badge> <Time at={disabled_at} ago /> {note !== null && <q>{note}</q>}
      </>
    )
  if (!in_catalog) return <Badge>not in the catalog</Badge>
  if (instances === 0) return <Badge>not tried</Badge>
  const [text, tone] = circuits[circuit]
  return (
    <>
      <Badge tone={tone}>{text}</Badge>
      {open_until !== null && (
        <span class="soft">
          {" "}
          tried again <Time at={open_until} ago />
        </span>
      )}
      {open_for_organizations > 0 && (
        <span class="soft"> open for {formatCounted(open_for_organizations, "organization")}</span>
      )}
    </>
  )
}

const lastError = ({ last_error, last_error_at }: RouteRecord) =>
  last_error === null ? null : (
    <>
      {last_error}{" "}
      <span class="soft nowrap">
        <Time at={last_error_at} ago />
      </span>
    </>
  )

const columns: ReadonlyArray<Column<RouteRecord>> = [
  {
    title: "Route",
    kind: "custom",
    value: ({ id }) => (
      <a href={link(["requests"], { route: id })}>
        <code>{id}</code>
      </a>
    )
  },
  { title: "Circuit", kind: "custom", value: (route) => <State route={route} /> },
  { title: "Requests", kind: "number", value: ({ requests }) => requests || null },
  {
    title: "Failures",
    kind: "amount",
    value: ({ failures, requests }) =>
      requests === 0 ? null : `${formatCount(failures)}${failures > 0 ? ` (${formatShare(failures / requests)})` : ""}`
  },
  {
    title: "Latency",
    kind: "amount",
    value: ({ latency_ms }) => (latency_ms === null ? null : formatMillis(latency_ms))
  },
  { title: "Last error", kind: "custom", value: lastError }
]

/** All instances together: the worst circuit, the last error, the average latency. */
export const RouteTable = ({
  isShown,
  routes
}: {
  readonly routes: Resource<{ readonly data: ReadonlyArray<RouteRecord> }>
  readonly isShown: (route: RouteRecord) => boolean
}) => {
  const shown = useActions(columns, (route) => <RouteActions route={route} onDone={routes.refresh} />)
  return (
    <Loaded resource={routes}>
      {({ data }) => (
        <Table
          label="Routes"
          empty={data.length === 0 ? "No provider of the catalog has its credential." : "No route matches."}
          rows={data.filter(isShown)}
          rowKey={({ id }) => id}
          columns={shown}
        />
      )}
    </Loaded>
  )
}
