import { usePages } from "../../api/usePages.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { Time } from "../../parts/Time.tsx"
import type { Hold, Organization } from "./records.ts"

export const Holds = ({ organization }: { readonly organization: Organization }) => {
  const holds = usePages<Hold>("/ledger/holds", { organization: organization.id, state: "open" }, 10)
  return (
    <Section title="Open holds">
      <PagedTable
        label="Open holds"
        pages={holds}
        empty="Nothing is held."
        rowKey={({ id }) => id}
        columns={[
          { title: "Held", kind: "custom", value: ({ created_at }) => <Time at={created_at} ago /> },
          { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
          { title: "Hold", kind: "code", value: ({ id }) => id }
        ]}
      />
    </Section>
  )
}
