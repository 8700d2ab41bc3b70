import { nounFor } from "../../../domain/Plural.ts"
import type { ReloadAnswer } from "../../../http/admin/Catalog.ts"
import type { ServedRoute } from "../../../http/admin/Routes.ts"
import type { Instance as InstanceSchema } from "../../../services/control/Instances.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { formatCounted } from "../../format/Amount.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { Badge } from "../../parts/Values.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { link } from "../../Route.ts"
import { InstanceTable } from "../control/Instances.tsx"
import type { CatalogRecord } from "./RouteTable.tsx"
import { RouteTable, stateOf } from "./RouteTable.tsx"

type Model = CatalogRecord["data"][number]

const State = ({ model: { callable, sandboxed } }: { readonly model: Model }) =>
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
    rowKey={({ id }) => id}
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
      { title: "State", kind: "custom", value: (model) => <State model={model} /> },
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
