import { Badge } from "../../parts/Badge.tsx"
import { Table } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import type { CatalogRecord } from "./RouteRecord.ts"

type Model = CatalogRecord["data"][number]

const State = ({ model: { callable, sandboxed } }: { readonly model: Model }) =>
  callable ? (
    <Badge tone={sandboxed ? "warn" : "good"}>{sandboxed ? "sandbox" : "on"}</Badge>
  ) : (
    <Badge tone="bad">off</Badge>
  )

/** What is sold, and why the rest is not. */
export const Models = ({ models }: { readonly models: ReadonlyArray<Model> }) => (
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
export const Margins = ({ models }: { readonly models: ReadonlyArray<Model> }) => (
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
