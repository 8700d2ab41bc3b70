import { addressOf } from "../../api/Client.ts"
import { usePages } from "../../api/usePages.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { shorten } from "../../format/Short.ts"
import { keyColumn, organizationColumn } from "../../parts/columns.tsx"
import { FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Column } from "../../parts/Table.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import type { ListedEntry } from "../organizations/records.ts"
import { Verify } from "./Verify.tsx"

const kinds: Readonly<Record<string, string>> = { top_up: "top-up", payment_reversal: "payment reversal" }

export const entryColumns: ReadonlyArray<Column<ListedEntry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", value: ({ kind }) => kinds[kind] ?? kind },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  {
    title: "Request",
    kind: "link",
    share: 20,
    hint: ({ request, request_id }) => request_id ?? request,
    value: ({ request, request_id }) =>
      request === null ? null : { href: link(["requests", request]), text: shorten(request_id ?? request, 16) }
  },
  { title: "Reference", kind: "code", share: 20, value: ({ ref }) => ref },
  { title: "Note", kind: "text", share: 22, value: ({ note }) => note },
  { ...keyColumn, share: 18 }
]

const columns = entryColumns.toSpliced(1, 0, { ...organizationColumn, share: 20 })

export const Ledger = () => {
  const { query } = useRoute()
  const { hold, kind, organization } = query
  const asked = { organization, kind, hold, ...useRange() }
  const entries = usePages<ListedEntry>("/ledger", asked)
  return (
    <Page title="Ledger">
      <Verify />
      <Section
        title="Entries"
        actions={
          <a href={addressOf("/ledger.csv", asked)} download>
            CSV of all that match
          </a>
        }
      >
        <FilterBar
          filters={[
            { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
            {
              kind: "select",
              name: "kind",
              label: "Kind",
              options: [
                ["top_up", "top-up"],
                "charge",
                "refund",
                ["payment_reversal", "payment reversal"],
                "adjustment"
              ]
            },
            { kind: "range" },
            { kind: "text", name: "hold", label: "Hold", placeholder: "id" }
          ]}
        />
        <PagedTable
          label="Entries"
          pages={entries}
          empty="No entry matches."
          rowKey={({ id }) => id}
          columns={columns}
        />
      </Section>
    </Page>
  )
}
