import type { MemberModel } from "../../../services/admin/ServedModels.ts"
import { useRoute } from "../../BrowserState.ts"
import { formatCount } from "../../format/Amount.ts"
import type { Filter } from "../../parts/FilterBar.tsx"
import type { Column } from "../../parts/Table.tsx"
import { Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"

/** Amounts in USD. Operators' records have the same fields, and more. */
export type PricedModel = typeof MemberModel.Encoded

/** A chat model has the prices of prompt and completion, any other model its first price. */
export const mainPrices = <Price,>({
  prices,
  surface
}: {
  readonly surface: PricedModel["surface"]
  readonly prices: ReadonlyArray<Price>
}): ReadonlyArray<Price> => prices.slice(0, surface === "chat" ? 2 : 1)

export const modelColumns: ReadonlyArray<Column<PricedModel>> = [
  {
    title: "Model",
    kind: "custom",
    value: ({ id }) => (
      <a href={link(["models", id])}>
        <code>{id}</code>
      </a>
    )
  },
  { title: "Endpoint type", kind: "text", value: ({ surface }) => surface },
  {
    title: "Price",
    kind: "custom",
    value: (model) =>
      mainPrices(model).map(({ price_usd, unit }) => (
        <div key={unit} class="nowrap">
          <Usd amount={price_usd} /> <span class="soft">{unit}</span>
        </div>
      ))
  }
]

export const contextText = ({ context_length }: PricedModel): string | null =>
  context_length === null ? null : `${formatCount(context_length)} tokens`

export const surfaceFilter: Filter = {
  kind: "select",
  name: "surface",
  label: "Endpoint type",
  options: ["chat", "image", "video"]
}

/** Returns a function that checks whether a model matches the filters in the page's address, by its id or another name. */
export const useModelFilter = () => {
  const { search = "", surface = "" } = useRoute().query
  const searchText = search.toLowerCase()
  return (model: PricedModel, otherNames: ReadonlyArray<string> = []): boolean =>
    (surface === "" || model.surface === surface) &&
    [model.id, ...otherNames].some((name) => name.toLowerCase().includes(searchText))
}
