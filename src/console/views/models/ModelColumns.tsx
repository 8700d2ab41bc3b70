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

const chatUnit = "per 1M tokens"

/** Returns `per 1K image` for `1K image`. Units of tokens have the word already. */
export const formatUnit = (unit: string): string => (/\bper\b/.test(unit) ? unit : `per ${unit}`)

/** Amounts in USD on one line. */
export const Amounts = ({ amounts }: { readonly amounts: ReadonlyArray<number | null> }) => (
  <span class="nowrap">
    {amounts.map((amount, index) => (
      <>
        {index > 0 && " / "}
        <Usd amount={amount} />
      </>
    ))}
  </span>
)

export const modelColumns: ReadonlyArray<Column<PricedModel>> = [
  {
    title: "Model",
    kind: "custom",
    value: ({ id }) => (
      <a class="nowrap" href={link(["models", id])}>
        <code>{id}</code>
      </a>
    )
  },
  { title: "Endpoint type", kind: "text", value: ({ surface }) => surface },
  {
    title: "Price (prompt / completion)",
    kind: "custom",
    value: (model) => (
      <span class="nowrap">
        <Amounts amounts={mainPrices(model).map(({ price_usd }) => price_usd)} />{" "}
        <span class="soft">{model.surface === "chat" ? chatUnit : formatUnit(model.prices[0]?.unit ?? "")}</span>
      </span>
    )
  }
]

export const contextText = ({ context_length }: PricedModel): string | null =>
  context_length === null ? null : `${formatCount(context_length)} tokens`

export const surfaceFilter: Filter = {
  isPinned: true,
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
