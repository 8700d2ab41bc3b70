import { creditKindOf, currencyText, discountText } from "../../../domain/Documents.ts"
import type { Statement as StatementSchema } from "../../../services/statements/Statements.ts"
import { useResource } from "../../api/useResource.ts"
import { replaceQuery, useRoute } from "../../BrowserState.ts"
import { formatUtc } from "../../format/Dates.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ExportButton, ListPage, Page, Section } from "../../parts/Page.tsx"
import { type Column, Table } from "../../parts/Table.tsx"
import { Badge, Fact, Internal } from "../../parts/Values.tsx"
import { link, withQuery } from "../../Route.ts"
import type { Organization } from "../organizations/records.ts"
import { DocumentHead, paidStatusOf, Receipt, type ReceiptDetail } from "../payments/Receipt.tsx"

type Statement = typeof StatementSchema.Encoded
type Entry = Statement["payments"][number] & { readonly kind: string }
type Usage = Statement["usage"][number]

const ReceiptLink = ({ entry: { id, ref } }: { readonly entry: Entry }) => (
  <a href={withQuery(useRoute(), { entry: id })} title="Receipt">
    {creditKindOf(ref)}
  </a>
)

const entryColumns: ReadonlyArray<Column<Entry>> = [
  { title: "Time (UTC)", kind: "text", value: ({ at }) => formatUtc(at) },
  {
    title: "Kind",
    kind: "custom",
    value: (entry) => (entry.kind === "credit" ? <ReceiptLink entry={entry} /> : entry.kind)
  },
  { title: "Reference", kind: "code", value: ({ ref }) => ref },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd }
]

const usageColumns: ReadonlyArray<Column<Usage>> = [
  { title: "Model", kind: "text", value: ({ model }) => model ?? "other" },
  { title: "Endpoint type", kind: "text", value: ({ surface }) => surface },
  { title: "Requests", kind: "number", value: ({ requests }) => requests },
  { title: "Prompt tokens", kind: "number", value: ({ prompt_tokens }) => prompt_tokens },
  { title: "Completion tokens", kind: "number", value: ({ completion_tokens }) => completion_tokens },
  { title: "Images", kind: "number", value: ({ images }) => images },
  { title: "Video seconds", kind: "number", value: ({ seconds }) => seconds },
  { title: "Charge", kind: "usd", value: ({ charge_usd }) => charge_usd }
]

const balanceColumns: ReadonlyArray<Column<readonly [string, number]>> = [
  { title: "Balance", kind: "text", value: ([name]) => name },
  { title: "Amount", kind: "usd", value: ([, amount]) => amount }
]

const entriesOf = ({ adjustments, payments, refunds, reversals }: Statement): ReadonlyArray<Entry> =>
  Object.entries({ credit: payments, "payment reversal": reversals, refund: refunds, adjustment: adjustments })
    .flatMap(([kind, entries]) => entries.map((entry) => ({ ...entry, kind })))
    .toSorted((a, b) => a.at - b.at)

const sum = (entries: ReadonlyArray<{ readonly amount_usd: number }>) =>
  entries.reduce((total, { amount_usd }) => total + Math.round(amount_usd * 1e9), 0) / 1e9

const StatementTables = ({ statement }: { readonly statement: Statement }) => {
  const discount = discountText(statement.discount_percent, statement.discount_changes)
  return (
    <>
      <DocumentHead
        seller={statement.seller}
        customer={{ id: statement.organization, name: statement.organization_name }}
      >
        <Fact name="Statement number" code={statement.number} />
        <Fact name="Period">{statement.period}</Fact>
        {!statement.closed && <Fact name="As of">{formatUtc(Date.now() / 1000)} UTC</Fact>}
        <Fact name="Currency">{currencyText}</Fact>
      </DocumentHead>
      <Section title="Balance">
        <Table
          label="Balance"
          rows={[
            ["Opening balance", statement.opening_usd],
            ["Payments and top-ups", sum(statement.payments)],
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
          empty="No charges in this month."
          columns={usageColumns}
        />
        {discount !== undefined && <p class="discount">{discount}</p>}
      </Section>
      <Section title="Entries">
        <Table
          label="Entries"
          rows={entriesOf(statement)}
          empty="No payments, top-ups, refunds or adjustments in this month."
          columns={entryColumns}
        />
      </Section>
    </>
  )
}

const ReceiptPage = ({ entry, id }: { readonly id: string; readonly entry: string }) => {
  const path = `/organizations/${encodeURIComponent(id)}/receipts/${encodeURIComponent(entry)}`
  const receipt = useResource<ReceiptDetail>(path)
  const status = receipt.data && paidStatusOf(receipt.data)
  return (
    <Page
      title="Receipt"
      lead={status && <Badge tone={status.tone}>{status.text}</Badge>}
      actions={receipt.data && <button onClick={() => print()}>Print</button>}
    >
      <p class="links">
        <a href={withQuery(useRoute(), { entry: undefined })}>Statement</a>
      </p>
      <Loaded resource={receipt}>{(data) => <Receipt receipt={data} />}</Loaded>
    </Page>
  )
}

const StatementPage = ({ id, month }: { readonly id: string; readonly month: string | undefined }) => {
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
          <ExportButton path={path} query={{ month }} />
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
      <Loaded resource={statement}>{(data) => <StatementTables statement={data} />}</Loaded>
    </Page>
  )
}

/** The payments and usage of an organization in a UTC month, or the receipt of an entry. The address names both. */
export const Statement = ({ id }: { readonly id: string }) => {
  const { entry, month } = useRoute().query
  return entry === undefined ? (
    <StatementPage id={id} month={month} />
  ) : (
    <ReceiptPage key={entry} id={id} entry={entry} />
  )
}

const filters: ReadonlyArray<Filter> = [{ kind: "text", name: "search", label: "Search", placeholder: "Name or ID" }]

const columns: ReadonlyArray<Column<Organization>> = [
  { title: "Organization", kind: "link", value: ({ id, name }) => ({ href: link(["statements", id]), text: name }) },
  { title: "Balance", kind: "usd", value: ({ balance_usd }) => balance_usd },
  { title: "ID", kind: "code", value: ({ id }) => id }
]

/** Lists organizations with links to their statements. */
export const Statements = () => (
  <ListPage
    title="Statements"
    label="Organizations"
    path="/organizations"
    filters={filters}
    nouns="organizations"
    columns={columns}
  />
)
