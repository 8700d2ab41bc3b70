import { addressOf } from "../../api/Client.ts"
import { usePages } from "../../api/usePages.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { organizationColumn } from "../../parts/columns.tsx"
import { FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import type { ListedEntry } from "../organizations/records.ts"
import { entryColumns } from "./entryColumns.ts"
import { Verify } from "./Verify.tsx"

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
