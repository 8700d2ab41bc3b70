import { usePages } from "../../api/usePages.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { link } from "../../Route.ts"
import type { Endpoint, Organization } from "./records.ts"

export const Endpoints = ({ organization: { id } }: { readonly organization: Organization }) => {
  const endpoints = usePages<Endpoint>("/webhooks", { organization: id }, 10)
  return (
    <Section title="Webhooks" actions={<a href={link(["webhooks"], { organization: id })}>All about them</a>}>
      <PagedTable
        label="Webhook endpoints"
        pages={endpoints}
        empty="It has no webhook endpoints."
        rowKey={({ id: endpoint }) => endpoint}
        columns={[
          { title: "URL", kind: "code", value: ({ url }) => url },
          {
            title: "State",
            kind: "status",
            value: ({ disabled_at }) =>
              disabled_at === null ? { text: "enabled", tone: "good" } : { text: "disabled", tone: "bad" }
          },
          { title: "Pending", kind: "number", value: ({ pending }) => pending },
          { title: "Last failure", kind: "text", value: ({ failure }) => failure },
          { title: "At", kind: "time", value: ({ failed_at }) => failed_at }
        ]}
      />
    </Section>
  )
}
