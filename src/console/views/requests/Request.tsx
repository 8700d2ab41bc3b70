import { useState } from "preact/hooks"
import { useResource } from "../../api/useResource.ts"
import { Badge } from "../../parts/Badge.tsx"
import { RefundBadge } from "../../parts/Charge.tsx"
import { Internal } from "../../parts/Internal.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Long } from "../../parts/Long.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import { useMembership, useRole } from "../../Session.ts"
import { VideoFailure } from "../videos/VideoFailure.tsx"
import { statusOf } from "./Outcome.ts"
import { PriceTable } from "./PriceTable.tsx"
import { RefundDialog } from "./RefundDialog.tsx"
import { RequestFacts } from "./RequestFacts.tsx"
import type { LedgerEntry, RequestDetail } from "./RequestRecord.ts"
import { TimelineList } from "./TimelineList.tsx"

const Entries = ({ entries }: { readonly entries: ReadonlyArray<LedgerEntry> }) => (
  <Table
    label="Ledger entries"
    empty="The ledger has no entry of it."
    rows={entries}
    rowKey={({ id }) => id}
    columns={[
      { title: "At", kind: "time", value: ({ at }) => at },
      { title: "Kind", kind: "text", value: ({ kind }) => kind },
      { title: "Note", kind: "text", value: ({ note }) => note },
      { title: "Reference", kind: "code", value: ({ ref }) => ref },
      { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd }
    ]}
  />
)

const Others = ({ request: { others = [], request_id } }: { readonly request: RequestDetail }) =>
  others.length === 0 ? null : (
    <p class="calm">
      Its client used the same request id for <a href={link(["requests"], { search: request_id })}>others</a>:{" "}
      {others.slice(0, 5).map((id, index) => (
        <>
          {index > 0 && ", "}
          <a key={id} href={link(["requests", id])}>
            <code>{id}</code>
          </a>
        </>
      ))}
      {others.length > 5 && "…"}
    </p>
  )

/** The error in the answer. */
const Reason = ({ request: { error } }: { readonly request: RequestDetail }) =>
  error && (
    <div class="error-box">
      <Long text={error.message} />
      {error.hint && (
        <p>
          <Long text={error.hint} />
        </p>
      )}
      {error.param && (
        <p>
          Field: <code>{error.param}</code>
        </p>
      )}
    </div>
  )

export const Request = ({ id }: { readonly id: string }) => {
  const found = useResource<RequestDetail>(`/requests/${encodeURIComponent(id)}`)
  const mayWrite = useRole("write")
  const mayRefund = useMembership() === undefined && mayWrite
  const [isRefunding, setRefunding] = useState(false)
  const request = found.data
  const status = request && statusOf(request.status, request.code)
  return (
    <Page
      title={request?.request_id ?? "Request"}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge>{" "}
            <RefundBadge charged={request.price.charge_usd} refunded={request.price.refunded_usd} />
          </>
        )
      }
      actions={
        mayRefund &&
        request !== undefined &&
        request.price.paid_usd > 0 && <button onClick={() => setRefunding(true)}>Refund…</button>
      }
    >
      <Loaded resource={found}>
        {(request) => (
          <>
            <Others request={request} />
            <Reason request={request} />
            {request.video && <VideoFailure video={request.video} />}
            <div class="request">
              <Internal>
                {() => (
                  <Section title="What happened">
                    <TimelineList request={request} />
                  </Section>
                )}
              </Internal>
              <Section title="Why this price">
                <PriceTable price={request.price} />
              </Section>
            </div>
            <Section title="Details">
              <RequestFacts request={request} />
            </Section>
            <Internal>
              {() => (
                <Section title="Ledger">
                  <Entries entries={request.entries} />
                </Section>
              )}
            </Internal>
          </>
        )}
      </Loaded>
      {isRefunding && request !== undefined && (
        <RefundDialog request={request} onClose={() => setRefunding(false)} onDone={found.refresh} />
      )}
    </Page>
  )
}
