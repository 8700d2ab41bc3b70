import { formatMillis } from "../../format/Moment.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Table } from "../../parts/Table.tsx"
import { outcomeOf } from "../requests/Outcome.ts"
import type { VideoRecord } from "./VideoRecord.ts"

/** Oldest first: which routes were asked for it, and how each answered. */
export const Attempts = ({ video: { attempts } }: { readonly video: VideoRecord }) => (
  <Table
    label="Attempts"
    empty="No provider was asked yet."
    rows={attempts.map((attempt, index) => ({ ...attempt, number: index + 1 }))}
    rowKey={({ number }) => number}
    columns={[
      { title: "Route", kind: "code", value: ({ route }) => route },
      {
        title: "Outcome",
        kind: "custom",
        value: ({ outcome, status }) => {
          const { text, tone } = outcomeOf(outcome)
          return (
            <Badge tone={tone}>
              {text}
              {status !== undefined && ` ${status}`}
            </Badge>
          )
        }
      },
      { title: "What it said", kind: "text", value: ({ detail }) => detail },
      { title: "Its request id", kind: "code", value: ({ provider_request_id }) => provider_request_id },
      { title: "Took", kind: "amount", value: ({ ms }) => formatMillis(ms) },
      { title: "Cost", kind: "usd", value: ({ cost_usd }) => cost_usd }
    ]}
  />
)
