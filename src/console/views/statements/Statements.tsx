import { usePages } from "../../api/usePages.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { link } from "../../Route.ts"
import type { Organization } from "../organizations/records.ts"

/** Leads to the statements of each organization. */
export const Statements = () => {
  const { search } = useRoute().query
  const organizations = usePages<Organization>("/organizations", { search })
  return (
    <Page title="Statements">
      <FilterBar filters={[{ kind: "text", name: "search", label: "Search", placeholder: "name or id" }]} />
      <PagedTable
        label="Organizations"
        pages={organizations}
        empty={search ? "None matches." : "There are no organizations yet."}
        rowKey={({ id }) => id}
        columns={[
          {
            title: "Statement",
            kind: "link",
            value: ({ id, name }) => ({ href: link(["statements", id]), text: name })
          },
          { title: "Balance", kind: "usd", value: ({ balance_usd }) => balance_usd },
          { title: "Id", kind: "code", value: ({ id }) => id }
        ]}
      />
    </Page>
  )
}
