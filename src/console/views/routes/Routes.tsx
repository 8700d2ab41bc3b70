import { nounFor } from "../../../domain/Plural.ts"
import type { CatalogAnswer, ReloadAnswer } from "../../../http/admin/Catalog.ts"
import type { ServedRoute } from "../../../http/admin/Routes.ts"
import type { Instance as InstanceSchema } from "../../../services/control/Instances.ts"
import { type Listed, type Resource, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { formatCount, formatCounted, formatShare } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded, toast } from "../../parts/Feedback.tsx"
import { TextField, textOf } from "../../parts/Field.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, Table, useActions } from "../../parts/Table.tsx"
import { Badge, Time } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { InstanceTable } from "../control/Instances.tsx"

/** Amounts in USD, moments in Unix seconds. */
type RouteRecord = typeof ServedRoute.Encoded
type CatalogRecord = typeof CatalogAnswer.Encoded

const RouteActions = ({ onDone, route }: { readonly route: RouteRecord; readonly onDone: () => void }) => {
  const { disabled_at, id } = route
  const shared = { isPlain: true, of: id, onDone }
  return (
    <div class="row-actions">
      {disabled_at === null ? (
        <WriteButton
          {...shared}
          key="disable"
          label="Disable"
          isDangerous
          path="/routes/disable"
          body={(form) => ({ route: id, note: textOf(form, "note") })}
          done={`${id} gets no new requests.`}
        >
          <p>
            Every instance sends it no new requests within two seconds, until it is enabled. What it is doing goes on.
          </p>
          <TextField name="note" label="Note" hint="Why, for those who find it disabled." />
        </WriteButton>
      ) : (
        <WriteButton
          {...shared}
          key="enable"
          label="Enable"
          path="/routes/enable"
          body={() => ({ route: id })}
          done={`${id} gets requests again.`}
        >
          <p>Every instance sends it requests again within two seconds.</p>
        </WriteButton>
      )}
      <WriteButton
        {...shared}
        label="Reset"
        path="/routes/reset"
        body={() => ({ route: id })}
        done={`The failures of ${id} are forgotten.`}
      >
        <p>Every instance closes its circuit and forgets its failures within two seconds.</p>
      </WriteButton>
    </div>
  )
}

const circuits: Readonly<Record<RouteRecord["circuit"], readonly [text: string, tone: Tone]>> = {
  closed: ["closed", "good"],
  half_open: ["half open", "warn"],
  open: ["open", "bad"]
}

type RouteState = RouteRecord["circuit"] | "disabled"

const stateOf = ({ circuit, disabled_at }: RouteRecord): RouteState => (disabled_at === null ? circuit : "disabled")

const CircuitState = ({ route }: { readonly route: RouteRecord }) => {
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
  { title: "Circuit", kind: "custom", value: (route) => <CircuitState route={route} /> },
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
const RouteTable = ({
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
          columns={shown}
        />
      )}
    </Loaded>
  )
}

type Model = CatalogRecord["data"][number]

const SaleState = ({ model: { callable, sandboxed } }: { readonly model: Model }) =>
  callable ? (
    <Badge tone={sandboxed ? "warn" : "good"}>{sandboxed ? "sandbox" : "on"}</Badge>
  ) : (
    <Badge tone="bad">off</Badge>
  )

/** What is sold, and why the rest is not. */
const Models = ({ models }: { readonly models: ReadonlyArray<Model> }) => (
  <Table
    label="Models"
    empty="No model matches."
    rows={models}
    columns={[
      {
        title: "Model",
        kind: "custom",
        value: ({ id }) => (
          <a href={link(["routes"], { search: id })}>
            <code>{id}</code>
          </a>
        )
      },
      { title: "Surface", kind: "text", value: ({ surface }) => surface },
      { title: "State", kind: "custom", value: (model) => <SaleState model={model} /> },
      {
        title: "Routes that can be called",
        kind: "amount",
        value: ({ routes }) => `${routes.filter(({ blocked }) => blocked === null).length} of ${routes.length}`
      },
      {
        title: "Why not",
        kind: "custom",
        value: ({ reason, routes }) =>
          reason ??
          routes.flatMap(({ blocked, id }) =>
            blocked === null
              ? []
              : [
                  <div key={id}>
                    <code>{id}</code> <span class="soft">{blocked}</span>
                  </div>
                ]
          )
      }
    ]}
  />
)

/** Price beside cost, of routes whose cost the catalog knows. */
const Margins = ({ models }: { readonly models: ReadonlyArray<Model> }) => (
  <div class="margins">
    <Table
      label="Margins"
      empty="The catalog knows no provider's price of these."
      rows={models.flatMap(({ routes }) =>
        routes.flatMap(({ margins, ...route }) => margins.map((margin) => ({ ...margin, ...route })))
      )}
      rowKey={({ id, unit }) => `${id} ${unit}`}
      columns={[
        { title: "Route", kind: "code", value: ({ id }) => id },
        { title: "Preference", kind: "number", value: ({ preference }) => preference },
        { title: "Weight", kind: "number", value: ({ weight }) => weight },
        { title: "Unit", kind: "text", value: ({ unit }) => unit },
        { title: "Price", kind: "usd", value: ({ price_usd }) => price_usd },
        { title: "Cost", kind: "usd", value: ({ cost_usd }) => cost_usd },
        { title: "Margin", kind: "usd", value: ({ margin_usd }) => margin_usd },
        {
          title: "Of the price",
          kind: "amount",
          value: ({ margin_pct }) => (margin_pct === null ? null : `${margin_pct} %`)
        }
      ]}
    />
  </div>
)

type Answered = typeof ReloadAnswer.Encoded

const say = ({ data }: Answered) => {
  const failed = data.filter(({ state }) => state !== "reloaded").length
  toast(
    failed === 0
      ? "Every instance has read its catalog again."
      : `${failed} of ${formatCounted(data.length, "instance")} ${nounFor(failed, "keeps its", "keep their")} previous catalog.`
  )
}

/** Which catalog each instance serves; unequal fingerprints are of unequal catalogs. */
const Instances = ({ onReload }: { readonly onReload: () => void }) => {
  const instances = useResource<Listed<typeof InstanceSchema>>("/instances", { everySeconds: 10 })
  const running = instances.data?.data.filter(({ state }) => state === "running") ?? []
  const isUneven = new Set(running.flatMap(({ fingerprint }) => fingerprint ?? [])).size > 1
  return (
    <Section
      title="Instances"
      actions={
        <WriteButton<Answered>
          label="Reload the catalog"
          title="Reload the catalog?"
          action="Reload"
          path="/catalog/reload"
          onDone={(answer) => {
            say(answer)
            instances.refresh()
            onReload()
          }}
        >
          <p>
            Every instance reads its catalog and its credentials again. One that refuses them goes on with what it had,
            and says why.
          </p>
        </WriteButton>
      }
    >
      {isUneven && <p class="error-box">The instances serve different catalogs.</p>}
      <Loaded resource={instances}>{() => <InstanceTable rows={running} />}</Loaded>
    </Section>
  )
}

const everySeconds = 5

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "search", label: "Model or provider" },
  {
    kind: "select",
    name: "state",
    label: "Circuit",
    options: ["closed", ["half_open", "half open"], "open", "disabled"]
  },
  {
    kind: "select",
    name: "sold",
    label: "Catalog",
    options: [
      ["on", "models that are on"],
      ["off", "models that are off"],
      ["loss", "sold below cost"]
    ]
  }
]

const isSold = ({ callable, routes }: CatalogRecord["data"][number], sold: string): boolean => {
  if (sold === "loss")
    return routes.some(({ margins }) => margins.some(({ margin_usd }) => margin_usd !== null && margin_usd < 0))
  return sold === "" || callable === (sold === "on")
}

const Losses = ({ losses }: Pick<CatalogRecord, "losses">) =>
  losses.length === 0 ? null : (
    <ul class="error-box losses">
      {losses.map((loss) => (
        <li key={loss}>{loss}</li>
      ))}
    </ul>
  )

export const Routes = () => {
  const { query } = useRoute()
  const { search = "", sold = "", state = "" } = query
  const routes = useResource<Listed<typeof ServedRoute>>("/routes", { everySeconds })
  const catalog = useResource<CatalogRecord>("/catalog")
  const wanted = search.toLowerCase()
  const isFound = (id: string) => id.toLowerCase().includes(wanted)
  const found = (models: CatalogRecord["data"]) =>
    models.filter((model) => [model.id, ...model.routes.map(({ id }) => id)].some(isFound) && isSold(model, sold))
  return (
    <Page title="Routes and catalog">
      <FilterBar filters={filters} />
      <Section title="Routes">
        <RouteTable
          routes={routes}
          isShown={(route) => isFound(route.id) && (state === "" || stateOf(route) === state)}
        />
      </Section>
      <Instances onReload={catalog.refresh} />
      <Section title="Models">
        <Loaded resource={catalog}>
          {({ data, losses }) => (
            <>
              <Losses losses={losses} />
              <Models models={found(data)} />
            </>
          )}
        </Loaded>
      </Section>
      {catalog.data && (
        <Section title="Prices and costs">
          <Margins models={found(catalog.data.data)} />
        </Section>
      )}
    </Page>
  )
}
