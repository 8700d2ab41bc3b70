import { nounFor, pluralize } from "../../../domain/Wording.ts"
import type { ModelsAnswer } from "../../../http/admin/ModelResource.ts"
import type { ReloadAnswer } from "../../../http/admin/RouteResource.ts"
import type { MemberModel, ServedModel } from "../../../services/admin/ServedModels.ts"
import type { InstanceRecord } from "../../../services/instance/RunningGateway.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../BrowserState.ts"
import { formatCount, formatCounted } from "../../format/Amount.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded, toast } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, Table } from "../../parts/Table.tsx"
import { Badge, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { InstanceTable } from "../control/Settings.tsx"
import { formatUnit, needsAttention, type RouteRecord, RouteTable } from "./ModelRoutes.tsx"

/** Amounts in USD. Operators' records have the same fields, and more. */
export type PricedModel = typeof MemberModel.Encoded

/** A chat model has the prices of prompt and completion, any other model its first price. */
const mainPrices = <Price,>({
  prices,
  surface
}: {
  readonly surface: PricedModel["surface"]
  readonly prices: ReadonlyArray<Price>
}): ReadonlyArray<Price> => prices.slice(0, surface === "chat" ? 2 : 1)

const chatUnit = "per 1M tokens"

/** Amounts in USD on one line. */
const Amounts = ({ amounts }: { readonly amounts: ReadonlyArray<number | null> }) => (
  <span class="nowrap">
    {amounts.map((amount, index) => (
      <>
        {index > 0 && " / "}
        <Usd amount={amount} />
      </>
    ))}
  </span>
)

const modelColumns: ReadonlyArray<Column<PricedModel>> = [
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

const surfaceFilter: Filter = {
  isPinned: true,
  kind: "select",
  name: "surface",
  label: "Endpoint type",
  options: ["chat", "image", "video"]
}

/** Returns a function that checks whether a model matches the filters in the page's address, by its id or another name. */
const useModelFilter = () => {
  const { search = "", surface = "" } = useRoute().query
  const searchText = search.toLowerCase()
  return (model: PricedModel, otherNames: ReadonlyArray<string> = []): boolean =>
    (surface === "" || model.surface === surface) &&
    [model.id, ...otherNames].some((name) => name.toLowerCase().includes(searchText))
}

/** Amounts in USD, times in Unix seconds. */
export type ModelRecord = typeof ServedModel.Encoded

export const saleStateOf = ({ callable, sandboxed }: ModelRecord): Status => {
  if (!callable) return { text: "unavailable", tone: "bad" }
  return sandboxed ? { text: "sandbox", tone: "warn" } : { text: "available", tone: "good" }
}

export const formatMargin = ({ lowest_margin_pct: percent }: ModelRecord): string | null =>
  percent === null ? null : `${percent} %`

const RouteSummary = ({ model: { routes } }: { readonly model: ModelRecord }) => {
  const open = routes.filter(({ disabled_at, off_reason }) => disabled_at === null && off_reason === null)
  const failing = routes.filter(needsAttention)
  return (
    <>
      {open.length} of {routes.length}
      {failing.length > 0 && (
        <>
          {" "}
          <Badge tone="warn">
            {failing.length} {nounFor(failing.length, "needs", "need")} attention
          </Badge>
        </>
      )}
    </>
  )
}

const columns: ReadonlyArray<Column<ModelRecord>> = [
  ...modelColumns,
  {
    title: "Lowest cost",
    kind: "custom",
    isLabelled: true,
    value: (model) => <Amounts amounts={mainPrices(model).map(({ cost_usd }) => cost_usd)} />
  },
  { title: "Lowest margin", kind: "amount", value: formatMargin },
  {
    title: "State",
    kind: "custom",
    value: (model) => {
      const { text, tone } = saleStateOf(model)
      return (
        <>
          <Badge tone={tone}>{text}</Badge>
          {model.loss && (
            <>
              {" "}
              <Badge tone="bad">sold below cost</Badge>
            </>
          )}
          {model.reason !== null && <small class="soft">{model.reason}</small>}
        </>
      )
    }
  },
  { title: "Available routes", kind: "custom", isLabelled: true, value: (model) => <RouteSummary model={model} /> }
]

type ReloadResult = typeof ReloadAnswer.Encoded

const toastReload = ({ data }: ReloadResult) => {
  const failedCount = data.filter(({ state }) => state !== "reloaded").length
  toast(
    failedCount === 0
      ? "All instances reloaded the catalog."
      : `${failedCount} of ${formatCounted(data.length, "instance")} ${nounFor(failedCount, "keeps its", "keep their")} previous catalog.`
  )
}

/** The catalog of each instance. Different fingerprints mean different catalogs. */
const Instances = ({ onReload }: { readonly onReload: () => void }) => {
  const instances = useResource<Listed<typeof InstanceRecord>>("/instances", { everySeconds: 10 })
  const running = instances.data?.data.filter(({ state }) => state === "running") ?? []
  const hasDifferentCatalogs = new Set(running.flatMap(({ fingerprint }) => fingerprint ?? [])).size > 1
  return (
    <Section
      title="Instances"
      actions={
        <WriteButton<ReloadResult>
          label="Reload catalog"
          title="Reload the catalog?"
          action="Reload"
          path="/catalog/reload"
          onDone={(answer) => {
            toastReload(answer)
            instances.refresh()
            onReload()
          }}
        >
          <p>
            Every instance reloads its catalog and credentials. An instance that rejects them keeps the previous ones
            and shows the problem.
          </p>
        </WriteButton>
      }
    >
      {hasDifferentCatalogs && <p class="error-box">The instances serve different catalogs.</p>}
      <Loaded resource={instances}>{() => <InstanceTable rows={running} />}</Loaded>
    </Section>
  )
}

const maxLosses = 20

const Losses = ({ losses }: { readonly losses: ReadonlyArray<string> }) =>
  losses.length === 0 ? null : (
    <details class="error-box losses">
      <summary>
        {pluralize(losses.length, "price")} {nounFor(losses.length, "is", "are")} below what the provider charges
      </summary>
      <ul>
        {losses.slice(0, maxLosses).map((loss) => (
          <li key={loss}>{loss}</li>
        ))}
        {losses.length > maxLosses && <li>and {formatCount(losses.length - maxLosses)} more</li>}
      </ul>
    </details>
  )

const FailingRoutes = ({
  onDone,
  routes
}: {
  readonly routes: ReadonlyArray<RouteRecord>
  readonly onDone: () => void
}) => {
  const failing = routes.filter(needsAttention)
  const label = "Routes that need attention"
  return failing.length === 0 ? null : (
    <Section title={label}>
      <RouteTable label={label} hasModels routes={failing} onDone={onDone} onTest={undefined} />
    </Section>
  )
}

const filters: ReadonlyArray<Filter> = [
  { isPinned: true, kind: "text", name: "search", label: "Model or provider" },
  surfaceFilter,
  {
    kind: "select",
    name: "state",
    label: "State",
    options: [
      ["available", "Available"],
      ["unavailable", "Unavailable"],
      ["attention", "Routes need attention"],
      ["loss", "Sold below cost"]
    ]
  }
]

const routeIdsOf = ({ routes }: ModelRecord): ReadonlyArray<string> => routes.map(({ id }) => id)

const isInState = (model: ModelRecord, state: string): boolean => {
  if (state === "attention") return model.routes.some(needsAttention)
  if (state === "loss") return model.loss
  return state === "" || model.callable === (state === "available")
}

const everySeconds = 10

/** The models of the catalog, for operators. */
export const Models = () => {
  const { state = "" } = useRoute().query
  const isMatch = useModelFilter()
  const models = useResource<typeof ModelsAnswer.Encoded>("/models", { everySeconds })
  return (
    <Page title="Models">
      <FilterBar filters={filters} />
      <Loaded resource={models}>
        {({ data, losses, other_routes }) => (
          <>
            <Losses losses={losses} />
            <FailingRoutes
              routes={[...other_routes, ...data.flatMap(({ routes }) => routes)]}
              onDone={models.refresh}
            />
            <Section title="All models">
              <Table
                label="Models"
                nouns="models"
                rows={data.filter((model) => isInState(model, state) && isMatch(model, routeIdsOf(model)))}
                columns={columns}
              />
            </Section>
          </>
        )}
      </Loaded>
      <Instances onReload={models.refresh} />
    </Page>
  )
}

const ownColumns: ReadonlyArray<Column<PricedModel>> = [
  ...modelColumns,
  { title: "Context", kind: "amount", value: contextText },
  { title: "Capabilities", kind: "text", value: ({ capabilities }) => capabilities.join(", ") }
]

const ownFilters: ReadonlyArray<Filter> = [
  { isPinned: true, kind: "text", name: "search", label: "Model" },
  surfaceFilter
]

/** The models that a member's organization can call, at its prices. */
export const OwnModels = () => {
  const isMatch = useModelFilter()
  const models = useResource<{ readonly data: ReadonlyArray<PricedModel> }>("/models")
  return (
    <Page title="Models">
      <FilterBar filters={ownFilters} />
      <Loaded resource={models}>
        {({ data }) => (
          <Table label="Models" nouns="models" rows={data.filter((model) => isMatch(model))} columns={ownColumns} />
        )}
      </Loaded>
    </Page>
  )
}
