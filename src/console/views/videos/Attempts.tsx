import { formatMillis } from "../../format/Moment.ts"
import { Table } from "../../parts/Table.tsx"
import { OutcomeBadge } from "../requests/OutcomeBadge.tsx"
import type { VideoRecord } from "./VideoRecord.ts"

/** Oldest first: how each submit ended. */
export const Attempts = ({ video: { attempts } }: { readonly video: VideoRecord }) => (
  <Table
    label="Attempts"
    empty="No submit has ended yet."
    rows={attempts.map((attempt, index) => ({ ...attempt, number: index + 1 }))}
    rowKey={({ number }) => number}
    columns={[
      { title: "Route", kind: "code", value: ({ route }) => route },
      { title: "Outcome", kind: "custom", value: (attempt) => <OutcomeBadge of={attempt} /> },
      { title: "What it said", kind: "text", value: ({ detail }) => detail },
      { title: "Its request id", kind: "code", value: ({ provider_request_id }) => provider_request_id },
      { title: "Took", kind: "amount", value: ({ ms }) => formatMillis(ms) },
      { title: "Cost", kind: "usd", value: ({ cost_usd }) => cost_usd }
    ]}
  />
)
