import { usePages } from "../../api/usePages.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { Time } from "../../parts/Time.tsx"
import { link } from "../../Route.ts"
import type { Hold, Organization } from "./records.ts"
import { useFresh } from "./useFresh.ts"

const listed = 10

export const Holds = ({ organization }: { readonly organization: Organization }) => {
  const query = { organization: organization.id, state: "open" }
  const holds = useFresh(usePages<Hold>("/ledger/holds", query, listed), organization, listed)
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
          {
            title: "Video",
            kind: "link",
            value: ({ video }) => (video === null ? null : { href: link(["videos", video]), text: video })
          },
          { title: "Key", kind: "code", value: ({ key_id }) => key_id },
          { title: "Hold", kind: "code", value: ({ id }) => id }
        ]}
      />
    </Section>
  )
}
