import { usePages } from "../../api/usePages.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import { holdColumns, type OpenHold } from "../holds/Holds.tsx"
import type { Organization } from "./records.ts"
import { useFresh } from "./useFresh.ts"

const listed = 10

export const Holds = ({ organization }: { readonly organization: Organization }) => {
  const query = { organization: organization.id, state: "open" }
  const holds = useFresh(usePages<OpenHold>("/ledger/holds", query, listed), organization, listed)
  return (
    <Section
      title="Open holds"
      actions={<a href={link(["holds"], { organization: organization.id })}>All open holds</a>}
    >
      <PagedTable
        label="Open holds"
        pages={holds}
        empty="Nothing is held."
        rowKey={({ id }) => id}
        columns={holdColumns}
      />
    </Section>
  )
}
