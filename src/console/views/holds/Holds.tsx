import { addressOf } from "../../api/Client.ts"
import { usePages } from "../../api/usePages.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { organizationColumn } from "../../parts/columns.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { holdColumns, type OpenHold } from "./holdColumns.tsx"

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
  {
    kind: "select",
    name: "older_than",
    label: "Older than",
    options: [
      ["1m", "a minute"],
      ["10m", "ten minutes"],
      ["1h", "an hour"],
      ["2h", "two hours"]
    ]
  }
]

const columns = holdColumns.toSpliced(1, 0, organizationColumn)

export const Holds = () => {
  const { older_than, organization } = useRoute().query
  const wanted = { organization, older_than }
  const holds = usePages<OpenHold>("/ledger/holds", wanted)
  return (
    <Page
      title="Open holds"
      actions={
        <>
          <a href={addressOf("/ledger/holds.csv", wanted)} download>
            CSV of all that match
          </a>
          <button onClick={holds.refresh}>Refresh</button>
        </>
      }
    >
      <FilterBar filters={filters} />
      <PagedTable label="Open holds" pages={holds} empty="Nothing is held." rowKey={({ id }) => id} columns={columns} />
    </Page>
  )
}
