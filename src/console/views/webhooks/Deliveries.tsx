import type { Page, Pages } from "../../api/usePages.ts"
import type { Tone } from "../../parts/Badge.tsx"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import type { Column } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { link } from "../../Route.ts"
import { useRole } from "../../Session.ts"
import type { DeliveryRecord } from "./WebhookRecord.ts"

const tones: Readonly<Record<DeliveryRecord["state"], Tone>> = { pending: "warn", delivered: "good", failed: "bad" }

const columns: ReadonlyArray<Column<DeliveryRecord>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  {
    title: "Event",
    kind: "custom",
    value: ({ id, type }) => (
      <>
        <div>{type}</div>
        <code class="soft">{id}</code>
      </>
    )
  },
  {
    title: "Organization",
    kind: "link",
    value: ({ org, org_name }) => ({ href: link(["organizations", org]), text: org_name ?? org })
  },
  { title: "URL", kind: "code", value: ({ url }) => url },
  { title: "State", kind: "status", value: ({ state }) => ({ text: state, tone: tones[state] }) },
  { title: "Tries", kind: "number", value: ({ tries }) => tries },
  {
    title: "Last answer",
    kind: "text",
    value: ({ failure, status }) => [status, failure].filter((part) => part !== null).join(" ") || null
  },
  { title: "Next try", kind: "time", value: ({ next_at }) => next_at }
]

export const Deliveries = ({ deliveries }: { readonly deliveries: Pages<DeliveryRecord, Page<DeliveryRecord>> }) => {
  const actions: Column<DeliveryRecord> = {
    title: "Actions",
    kind: "custom",
    value: ({ id }) => (
      <WriteButton
        isPlain
        label="Replay"
        of={id}
        title="Send this event again?"
        action="Send again"
        method="POST"
        path={`/webhooks/deliveries/${encodeURIComponent(id)}/replay`}
        onDone={() => {
          toast("The event is sent again.")
          deliveries.refresh()
        }}
      >
        <p>It goes to all its destinations, under the same id, so that a server that has it already can tell.</p>
      </WriteButton>
    )
  }
  return (
    <Section title="Deliveries" actions={<button onClick={deliveries.refresh}>Refresh</button>}>
      <PagedTable
        label="Deliveries"
        pages={deliveries}
        empty="No delivery matches."
        rowKey={({ endpoint, id, url }) => `${id} ${endpoint} ${url}`}
        columns={useRole("write") ? [...columns, actions] : columns}
      />
    </Section>
  )
}
