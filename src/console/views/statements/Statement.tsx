import type { Statement as StatementSchema } from "../../../services/statements/Statement.ts"
import { addressOf } from "../../api/Client.ts"
import { useResource } from "../../api/useResource.ts"
import { replaceQuery, useRoute } from "../../CurrentRoute.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { Internal } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import type { Organization } from "../organizations/records.ts"

type Statement = typeof StatementSchema.Encoded
type Entry = Statement["payments"][number] & { readonly kind: string }
type Usage = Statement["usage"][number]

const entryColumns: ReadonlyArray<Column<Entry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", value: ({ kind }) => kind },
  { title: "Reference", kind: "code", value: ({ ref }) => ref },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd }
]

const usageColumns: ReadonlyArray<Column<Usage>> = [
  { title: "Model", kind: "text", value: ({ model }) => model ?? "other" },
  { title: "Surface", kind: "text", value: ({ surface }) => surface },
  { title: "Requests", kind: "number", value: ({ requests }) => requests },
  { title: "Prompt tokens", kind: "number", value: ({ prompt_tokens }) => prompt_tokens },
  { title: "Completion tokens", kind: "number", value: ({ completion_tokens }) => completion_tokens },
  { title: "Images", kind: "number", value: ({ images }) => images },
  { title: "Seconds", kind: "number", value: ({ seconds }) => seconds },
  { title: "Charge", kind: "usd", value: ({ charge_usd }) => charge_usd }
]

const balanceColumns: ReadonlyArray<Column<readonly [string, number]>> = [
  { title: "Balance", kind: "text", value: ([name]) => name },
  { title: "Amount", kind: "usd", value: ([, amount]) => amount }
]

const entriesOf = ({ adjustments, payments, refunds, reversals }: Statement): ReadonlyArray<Entry> =>
  Object.entries({ payment: payments, "payment reversal": reversals, refund: refunds, adjustment: adjustments })
    .flatMap(([kind, entries]) => entries.map((entry) => ({ ...entry, kind })))
    .toSorted((a, b) => a.at - b.at)

const sum = (entries: ReadonlyArray<{ readonly amount_usd: number }>) =>
  entries.reduce((total, { amount_usd }) => total + Math.round(amount_usd * 1e9), 0) / 1e9

const Shown = ({ statement }: { readonly statement: Statement }) => (
  <>
    <Section title="Balance">
      <Table
        label="Balance"
        rows={[
          ["Opening balance", statement.opening_usd],
          ["Payments", sum(statement.payments)],
          ["Payment reversals", sum(statement.reversals)],
          ["Refunds", sum(statement.refunds)],
          ["Adjustments", sum(statement.adjustments)],
          ["Charges", -statement.total_charge_usd],
          ["Closing balance", statement.closing_usd]
        ]}
        rowKey={([name]) => name}
        columns={balanceColumns}
      />
    </Section>
    <Section title="Usage">
      <Table
        label="Usage"
        rows={statement.usage}
        rowKey={({ model, surface }) => `${model} ${surface}`}
        empty="Nothing was charged."
        columns={usageColumns}
      />
    </Section>
    <Section title="Entries">
      <Table
        label="Entries"
        rows={entriesOf(statement)}
        empty="Nothing was paid or given back."
        columns={entryColumns}
      />
    </Section>
  </>
)

/** What an organization paid and used in a month of UTC; its address has the month. */
export const Statement = ({ id }: { readonly id: string }) => {
  const { month } = useRoute().query
  const path = `/organizations/${encodeURIComponent(id)}/statement`
  const statement = useResource<Statement>(path, { query: { month } })
  return (
    <Page
      title="Statement"
      actions={
        <>
          <label>
            Month{" "}
            <input
              type="month"
              value={month ?? statement.data?.month ?? ""}
              onChange={({ currentTarget: { value } }) => replaceQuery({ month: value })}
            />
          </label>
          <button onClick={() => print()}>Print</button>
          <a href={addressOf(`${path}.csv`, { month })} download>
            CSV
          </a>
        </>
      }
    >
      <Internal>
        {() => (
          <p class="links">
            <a href={link(["organizations", id])}>Organization</a>
          </p>
        )}
      </Internal>
      <Loaded resource={statement}>{(found) => <Shown statement={found} />}</Loaded>
    </Page>
  )
}

const filters: ReadonlyArray<Filter> = [{ kind: "text", name: "search", label: "Search", placeholder: "name or id" }]

const columns: ReadonlyArray<Column<Organization>> = [
  { title: "Statement", kind: "link", value: ({ id, name }) => ({ href: link(["statements", id]), text: name }) },
  { title: "Balance", kind: "usd", value: ({ balance_usd }) => balance_usd },
  { title: "Id", kind: "code", value: ({ id }) => id }
]

/** Leads to the statements of each organization. */
export const Statements = () => (
  <ListPage
    title="Statements"
    label="Organizations"
    path="/organizations"
    filters={filters}
    empty={useRoute().query["search"] ? "None matches." : "There are no organizations yet."}
    columns={columns}
  />
)
