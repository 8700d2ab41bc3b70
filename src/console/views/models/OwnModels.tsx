import { useResource } from "../../api/useResource.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Snippets } from "../../parts/Snippets.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { Fact, Facts } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import {
  contextText,
  formatUnit,
  modelColumns,
  type PricedModel,
  surfaceFilter,
  useModelFilter
} from "./ModelColumns.tsx"

const columns: ReadonlyArray<Column<PricedModel>> = [
  ...modelColumns,
  { title: "Context", kind: "amount", value: contextText },
  { title: "Capabilities", kind: "text", value: ({ capabilities }) => capabilities.join(", ") }
]

const filters: ReadonlyArray<Filter> = [{ isPinned: true, kind: "text", name: "search", label: "Model" }, surfaceFilter]

/** The models that a member's organization can call, at its prices. */
export const OwnModels = () => {
  const isMatch = useModelFilter()
  const models = useResource<{ readonly data: ReadonlyArray<PricedModel> }>("/models")
  return (
    <Page title="Models">
      <FilterBar filters={filters} />
      <Loaded resource={models}>
        {({ data }) => (
          <Table label="Models" nouns="models" rows={data.filter((model) => isMatch(model))} columns={columns} />
        )}
      </Loaded>
    </Page>
  )
}

const priceColumns: ReadonlyArray<Column<PricedModel["prices"][number]>> = [
  { title: "Unit", kind: "text", value: ({ unit }) => formatUnit(unit) },
  { title: "Price", kind: "usd", value: ({ price_usd }) => price_usd }
]

/** One model with a first request, for members. */
export const OwnModel = ({ id }: { readonly id: string }) => {
  const resource = useResource<PricedModel>(`/models/${encodeURIComponent(id)}`)
  return (
    <Page title={id} actions={<a href={link(["playground"], { model: id })}>Open in playground</a>}>
      <Loaded resource={resource}>
        {(model) => (
          <>
            <Facts>
              <Fact name="Endpoint type">{model.surface}</Fact>
              <Fact name="Context">{contextText(model)}</Fact>
              <Fact name="Capabilities">{model.capabilities.join(", ") || null}</Fact>
            </Facts>
            <Section title="Prices">
              <Table label="Prices" rows={model.prices} rowKey={({ unit }) => unit} columns={priceColumns} />
            </Section>
            <Section title="Your first request">
              <Snippets model={id} surface={model.surface} />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  )
}
