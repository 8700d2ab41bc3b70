import type { ModelTest } from "../../../services/admin/ModelTests.ts"
import type { ServedRoute } from "../../../services/admin/ServedModels.ts"
import { formatCount, formatCounted, formatShare } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { TextField, textOf } from "../../parts/Fields.tsx"
import { Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, Table, useActions } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Long, Time, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { shortRoute } from "../requests/RequestRows.ts"

/** Amounts in USD. */
export type TestResult = typeof ModelTest.Encoded

export const TestButton = ({
  model,
  onDone,
  route
}: {
  readonly model: string
  /** The only route to call. Undefined: all routes of the model. */
  readonly route?: string
  readonly onDone: (result: TestResult) => void
}) => (
  <WriteButton<TestResult>
    label="Test"
    target={route ?? model}
    isPlain={route !== undefined}
    path={`/models/${encodeURIComponent(model)}/test`}
    body={() => (route === undefined ? {} : { route })}
    onDone={onDone}
  >
    <p>
      Sends one small request to {route === undefined ? "the model" : "this route only"} and waits up to 60 seconds. You
      pay the provider for it. No organization is charged.
    </p>
  </WriteButton>
)

const tokensOf = (count: number | null) => (count === null ? null : formatCount(count))

export const TestSection = ({ result }: { readonly result: TestResult }) => (
  <Section title="Test">
    <div role="status">
      <Facts>
        <Fact name="Result">
          <Badge tone={result.ok ? "good" : "bad"}>{result.ok ? "succeeded" : "failed"}</Badge>
        </Fact>
        {result.error !== null && (
          <Fact name="Reason">
            <Long text={result.error} />
          </Fact>
        )}
        {result.ok &&
          (result.image_size === null ? (
            <Fact name="Response">{result.text ? <Long text={result.text} /> : "The response has no text."}</Fact>
          ) : (
            <Fact name="Image size">{result.image_size}</Fact>
          ))}
        <Fact name="Latency">{formatMillis(result.latency_ms)}</Fact>
        {result.cost_usd === null ? <Fact name="Cost">unknown</Fact> : <Fact name="Cost" usd={result.cost_usd} />}
        <Fact name="Prompt tokens">{tokensOf(result.prompt_tokens)}</Fact>
        <Fact name="Completion tokens">{tokensOf(result.completion_tokens)}</Fact>
        <Fact name="Route" code={result.route} />
      </Facts>
      <Table
        label="Attempts"
        empty="No attempts."
        rows={result.attempts}
        rowKey={({ ms, route }) => `${route} ${ms}`}
        columns={[
          { title: "Route", kind: "code", value: ({ route }) => route },
          { title: "Outcome", kind: "text", value: ({ outcome }) => outcome },
          { title: "Status", kind: "amount", value: ({ status }) => (status === null ? null : String(status)) },
          { title: "Duration", kind: "amount", value: ({ ms }) => formatMillis(ms) },
          { title: "Detail", kind: "text", value: ({ detail }) => detail }
        ]}
      />
    </div>
  </Section>
)

/** Amounts in USD, times in Unix seconds. */
export type RouteRecord = typeof ServedRoute.Encoded

/** Returns whether an operator should look at the route: it is disabled, fails, loses money or is in no catalog. */
export const needsAttention = (route: RouteRecord): boolean => {
  const { circuit, disabled_at, in_catalog, loss, off_reason, open_for_organizations } = route
  if (disabled_at !== null || !in_catalog) return true
  return circuit !== "closed" || open_for_organizations > 0 || (loss && off_reason === null)
}

interface RouteChanges {
  readonly onDone: () => void
  /** Undefined if the model cannot be tested. */
  readonly onTest: ((result: TestResult) => void) | undefined
}

const RouteActions = ({ onDone, onTest, route }: RouteChanges & { readonly route: RouteRecord }) => {
  const { disabled_at, id, model, off_reason } = route
  const shared = { isPlain: true, target: id, onDone }
  return (
    <div class="row-actions">
      {onTest && off_reason === null && <TestButton model={model} route={id} onDone={onTest} />}
      {disabled_at === null ? (
        <WriteButton
          {...shared}
          key="disable"
          label="Disable"
          isDangerous
          path="/routes/disable"
          body={(form) => ({ route: id, note: textOf(form, "note") })}
          done={`${id} is disabled.`}
        >
          <p>Within two seconds, no instance sends new requests to this route. Requests in progress continue.</p>
          <TextField name="note" label="Note" hint="The reason, shown to other operators." />
        </WriteButton>
      ) : (
        <WriteButton
          {...shared}
          key="enable"
          label="Enable"
          path="/routes/enable"
          body={() => ({ route: id })}
          done={`${id} is enabled.`}
        >
          <p>Within two seconds, every instance sends requests to this route again.</p>
        </WriteButton>
      )}
      <WriteButton
        {...shared}
        label="Reset"
        path="/routes/reset"
        body={() => ({ route: id })}
        done={`${id} was reset.`}
      >
        <p>
          Within two seconds, every instance clears the failures of this route and uses it again. Its circuit breaker
          closes.
        </p>
      </WriteButton>
    </div>
  )
}

const circuits: Readonly<Record<RouteRecord["circuit"], readonly [text: string, tone: Tone]>> = {
  closed: ["healthy", "good"],
  half_open: ["being tried again", "warn"],
  open: ["paused after failures", "bad"]
}

/** The state of a circuit breaker in plain words, with its technical name. */
export const CircuitBadge = ({
  circuit,
  isFailing = false
}: Pick<RouteRecord, "circuit"> & {
  /** Whether each request has failed. A few failures leave the circuit closed, but the route is not healthy. */
  readonly isFailing?: boolean
}) => {
  const [text, tone] = isFailing && circuit === "closed" ? (["failing", "bad"] as const) : circuits[circuit]
  return (
    <>
      <Badge tone={tone}>{text}</Badge> <small class="soft">circuit breaker {circuit.replace("_", "-")}</small>
    </>
  )
}

const RouteHealth = ({ route }: { readonly route: RouteRecord }) => {
  const { circuit, disabled_at, in_catalog, instances, note, off_reason, open_for_organizations, open_until } = route
  const { failures, requests } = route
  if (disabled_at !== null)
    return (
      <>
        <Badge tone="warn">disabled</Badge> <Time at={disabled_at} isRelative /> {note !== null && <q>{note}</q>}
      </>
    )
  if (!in_catalog) return <Badge>not in the catalog</Badge>
  if (off_reason !== null)
    return (
      <>
        <Badge>unavailable</Badge> <span class="soft">{off_reason}</span>
      </>
    )
  if (instances === 0) return <Badge>not used yet</Badge>
  return (
    <>
      <CircuitBadge circuit={circuit} isFailing={requests > 0 && failures === requests} />
      {open_until !== null && (
        <small class="soft">
          next try <Time at={open_until} isRelative />
        </small>
      )}
      {open_for_organizations > 0 && (
        <small class="soft">paused for {formatCounted(open_for_organizations, "organization")}</small>
      )}
    </>
  )
}

const lastError = ({ last_error, last_error_at }: RouteRecord) =>
  last_error === null ? null : (
    <>
      {last_error}{" "}
      <span class="soft nowrap">
        <Time at={last_error_at} isRelative />
      </span>
    </>
  )

const columns: ReadonlyArray<Column<RouteRecord>> = [
  {
    title: "Route",
    kind: "custom",
    value: ({ id, in_catalog, preference, weight }) => (
      <>
        <a href={link(["requests"], { route: id })}>
          <code>{id}</code>
        </a>
        {in_catalog && (
          <small class="soft">
            preference {preference}, weight {weight}
          </small>
        )}
      </>
    )
  },
  { title: "Health", kind: "custom", value: (route) => <RouteHealth route={route} /> },
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

const modelColumn: Column<RouteRecord> = {
  title: "Model",
  kind: "link",
  value: ({ in_catalog, model }) => (in_catalog ? { href: link(["models", model]), text: model } : null)
}

const columnsWithModel = [modelColumn, ...columns]

/** Each row combines all instances: the worst circuit, the last error, the average latency. */
export const RouteTable = ({
  hasModels = false,
  label = "Routes",
  routes,
  ...changes
}: RouteChanges & {
  readonly routes: ReadonlyArray<RouteRecord>
  readonly label?: string
  /** Whether the routes are those of several models. */
  readonly hasModels?: boolean
}) => {
  const columnsWithActions = useActions(hasModels ? columnsWithModel : columns, (route) => (
    <RouteActions route={route} {...changes} />
  ))
  return <Table label={label} empty="No routes." rows={routes} columns={columnsWithActions} />
}

/** Returns `per 1K image` for `1K image`. Units of tokens have the word already. */
export const formatUnit = (unit: string): string => (/\bper\b/.test(unit) ? unit : `per ${unit}`)

const MarginCell = ({ margin }: { readonly margin: RouteRecord["margins"][number] | undefined }) =>
  margin === undefined ? null : (
    <>
      <Usd amount={margin.cost_usd} none="unknown" />
      {margin.margin_pct !== null && (
        <span class={margin.margin_pct < 0 ? "problem" : "soft"}> {margin.margin_pct} %</span>
      )}
    </>
  )

/** The price of each unit, and the cost and margin of each route in the catalog. */
export const Margins = ({ routes: all }: { readonly routes: ReadonlyArray<RouteRecord> }) => {
  const routes = all.filter(({ margins }) => margins.length > 0)
  const units = [...new Set(routes.flatMap(({ margins }) => margins.map(({ unit }) => unit)))]
  const rows = units.map((unit) => {
    const margins = routes.map((route) => route.margins.find((margin) => margin.unit === unit))
    return { unit, margins, price_usd: margins.find((margin) => margin !== undefined)?.price_usd }
  })
  return (
    <Table
      label="Margins"
      empty="No prices or costs."
      rows={rows}
      rowKey={({ unit }) => unit}
      columns={[
        { title: "Unit", kind: "text", value: ({ unit }) => formatUnit(unit) },
        { title: "Price", kind: "usd", value: ({ price_usd }) => price_usd },
        ...routes.map(
          ({ id, model }, index): Column<(typeof rows)[number]> => ({
            title: `Cost and margin, ${shortRoute(id, model)}`,
            kind: "custom",
            isAmount: true,
            value: ({ margins }) => <MarginCell margin={margins[index]} />
          })
        )
      ]}
    />
  )
}
