import type { AuditRow as AuditRowSchema } from "../../../services/admin/Audit.ts"
import { usePages } from "../../api/usePages.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { Badge } from "../../parts/Badge.tsx"
import { organizationColumn } from "../../parts/columns.tsx"
import { FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { Difference } from "./Difference.tsx"

type AuditRow = typeof AuditRowSchema.Encoded

export const Audit = () => {
  const { action, actor, organization, target } = useRoute().query
  const rows = usePages<AuditRow>("/audit", { actor, action, target, organization, ...useRange() })
  return (
    <Page title="Audit">
      <FilterBar
        filters={[
          { kind: "text", name: "actor", label: "Who", placeholder: "operator" },
          { kind: "text", name: "action", label: "What", placeholder: "keys or keys.revoke" },
          { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
          { kind: "text", name: "target", label: "Target", placeholder: "id" },
          { kind: "range" }
        ]}
      />
      <PagedTable
        label="Changes"
        pages={rows}
        empty="No change matches."
        rowKey={({ id }) => id}
        columns={[
          { title: "Time", kind: "time", value: ({ at }) => at },
          {
            title: "Who",
            kind: "custom",
            value: ({ actor: who, via }) => (
              <>
                {who} <Badge>{via}</Badge>
              </>
            )
          },
          { title: "What", kind: "text", value: ({ action: what }) => what },
          organizationColumn,
          {
            title: "Before and after",
            kind: "custom",
            value: ({ after, before }) => <Difference before={before} after={after} />
          },
          { title: "Target", kind: "code", value: ({ target: id }) => id }
        ]}
      />
    </Page>
  )
}
