import type { FailureCount } from "../../../services/telemetry/RequestFailures.ts"
import { useResource } from "../../api/useResource.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Time } from "../../parts/Time.tsx"
import { link } from "../../Route.ts"
import { statusOf } from "../requests/Outcome.ts"

type Failure = typeof FailureCount.Encoded
interface Answer {
  readonly data: ReadonlyArray<Failure>
}

const span = "7d"
const everySeconds = 60

const keyOf = ({ code, status }: Failure) => `${status} ${code}`

const Outcome = ({ failure: { code, status } }: { readonly failure: Failure }) => (
  <>
    <Badge tone={statusOf(status, code).tone}>{status}</Badge>{" "}
    <a href={link(["requests"], { status, code, since: span })}>{code ?? "without a code"}</a>
  </>
)

/** Why requests failed; each reason leads to them. */
export const Failures = () => {
  const path = "/requests/failures"
  const failures = useResource<Answer>(path, { query: { since: span }, everySeconds })
  const today = useResource<Answer>(path, { query: { since: "today" }, everySeconds })
  const counts = today.data && new Map(today.data.data.map((failure) => [keyOf(failure), failure.requests]))
  return (
    <Section title="Refused or failed">
      <Loaded resource={failures}>
        {({ data }) => (
          <Table
            label="Refused or failed"
            empty="No request failed in the last 7 days."
            rows={data}
            rowKey={keyOf}
            columns={[
              { title: "Answer", kind: "custom", value: (failure) => <Outcome failure={failure} /> },
              { title: "Today (UTC)", kind: "number", value: (failure) => counts && (counts.get(keyOf(failure)) ?? 0) },
              { title: "In 7 days", kind: "number", value: ({ requests }) => requests },
              { title: "Last", kind: "custom", value: ({ last_at }) => <Time at={last_at} ago /> }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
