import type { ServedRoute } from "../../../http/admin/Routes.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Margins, Models } from "./CatalogTables.tsx"
import { Instances } from "./Instances.tsx"
import type { CatalogRecord } from "./RouteRecord.ts"
import { RouteTable, stateOf } from "./RouteTable.tsx"

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
