import { useEffect, useRef, useState } from "preact/hooks"
import { nounFor } from "../../../domain/Wording.ts"
import type { LastLine, ProofLine } from "../../../http/admin/LedgerResource.ts"
import type { OpenHold as OpenHoldSchema } from "../../../services/ledger/OpenHolds.ts"
import { readLines } from "../../api/ApiClient.ts"
import type { ApiError } from "../../api/ApiError.ts"
import { asApiError, useResource } from "../../api/useResource.ts"
import { formatCount, formatCounted } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { type Filter, useFilters } from "../../parts/FilterBar.tsx"
import { ExportButton, ListPage, Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, keyColumn, organizationColumn, Table } from "../../parts/Table.tsx"
import { Badge, shorten, Time } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import type { ListedEntry } from "../organizations/records.ts"

type Proof = typeof ProofLine.Encoded
type End = typeof LastLine.Encoded

type Run =
  | { readonly status: "running"; readonly proofs: ReadonlyArray<Proof> }
  | { readonly status: "interrupted"; readonly proofs: ReadonlyArray<Proof> }
  | { readonly status: "failed"; readonly proofs: ReadonlyArray<Proof>; readonly error: ApiError }
  | { readonly status: "finished"; readonly proofs: ReadonlyArray<Proof>; readonly end: End }

const useRun = () => {
  const [run, setRun] = useState<Run>()
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const start = async () => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const proofs: Array<Proof> = []
    let end: End | undefined
    setRun({ status: "running", proofs: [] })
    try {
      await readLines<Proof | End>(
        "/ledger/verify",
        (line) => {
          if ("done" in line) end = line
          else {
            proofs.push(line)
            setRun({ status: "running", proofs: [...proofs] })
          }
        },
        signal
      )
    } catch (error) {
      if (!signal.aborted) setRun({ status: "failed", proofs, error: asApiError(error) })
      return
    }
    setRun(end === undefined ? { status: "interrupted", proofs } : { status: "finished", proofs, end })
  }
  const stop = () => {
    controller.current?.abort()
    setRun(undefined)
  }
  return [run, start, stop] as const
}

const Violations = ({ count, invariant, violations }: Proof) => (
  <Section title={`Violated: ${invariant}`}>
    <Table
      label={invariant}
      rows={violations}
      rowKey={(row) => JSON.stringify(row)}
      columns={Object.keys(violations[0] ?? {}).map((title) => ({
        title,
        kind: "code" as const,
        value: (row: Proof["violations"][number]) => String(row[title])
      }))}
    />
    {count > violations.length && (
      <p class="soft">
        Showing the first {formatCount(violations.length)} of {formatCounted(count, "row")}.
      </p>
    )}
  </Section>
)

const Conclusion = ({ run }: { readonly run: Run }) => {
  if (run.status === "failed") return <ErrorBox error={run.error} />
  if (run.status === "interrupted")
    return <p class="problem">The check was interrupted and is incomplete. Verify again.</p>
  if (run.status === "running") return <p class="soft">Checking the ledger…</p>
  const { at, entries, holds, holds_true, organizations } = run.end
  const scope = `${formatCounted(organizations, "organization")}, ${formatCounted(entries, "entry", "entries")} and ${formatCounted(holds, "hold")}`
  const failedCount = run.proofs.filter(({ count }) => count > 0).length
  return holds_true && failedCount === 0 ? (
    <p>
      <Badge tone="good">verified</Badge> All {run.proofs.length} invariants hold for {scope}, as of <Time at={at} />.
    </p>
  ) : (
    <p class="problem">
      The check failed: {failedCount} of {formatCounted(run.proofs.length, "invariant")}{" "}
      {nounFor(failedCount, "is", "are")} violated. Checked: {scope}, as of <Time at={at} />.
    </p>
  )
}

/** Checks every invariant over the whole database, as `gateway ledger verify` does. */
const Verify = () => {
  const [run, start, stop] = useRun()
  const isRunning = run?.status === "running"
  const names = useResource<{ readonly data: ReadonlyArray<string> }>("/ledger/invariants")
  const proofs = new Map(run?.proofs.map((proof) => [proof.invariant, proof]))
  const rows = [...new Set([...(names.data?.data ?? []), ...proofs.keys()])]
  return (
    <Section
      title="Verification"
      actions={
        isRunning ? (
          <button onClick={stop}>Stop</button>
        ) : (
          <button onClick={() => void start()}>{run === undefined ? "Verify" : "Verify again"}</button>
        )
      }
    >
      {run === undefined ? (
        <p class="soft">Checks every invariant of the whole ledger. With millions of entries, this takes minutes.</p>
      ) : (
        <>
          <div role="status">
            <Conclusion run={run} />
          </div>
          <ol class="proofs panel">
            {rows.map((name) => {
              const proof = proofs.get(name)
              return (
                <li key={name}>
                  {proof === undefined ? (
                    <Badge>{isRunning ? "pending" : "not checked"}</Badge>
                  ) : proof.count === 0 ? (
                    <Badge tone="good">passed</Badge>
                  ) : (
                    <Badge tone="bad">{formatCounted(proof.count, "violation")}</Badge>
                  )}
                  <span>{name}</span>
                  <span class="soft">{proof && formatMillis(proof.ms)}</span>
                </li>
              )
            })}
          </ol>
          {run.proofs.flatMap((proof) => (proof.count > 0 ? [<Violations key={proof.invariant} {...proof} />] : []))}
        </>
      )}
    </Section>
  )
}

const kinds: Readonly<Record<string, string>> = { top_up: "top-up", payment_reversal: "payment reversal" }

export const entryColumns: ReadonlyArray<Column<ListedEntry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", narrow: "main", value: ({ kind }) => kinds[kind] ?? kind },
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  {
    title: "Request",
    kind: "link",
    share: 20,
    hint: ({ request, request_id }) => request_id ?? request,
    value: ({ request, request_id }) =>
      request === null ? null : { href: link(["requests", request]), text: shorten(request_id ?? request, 16) }
  },
  { title: "Reference", kind: "code", share: 20, value: ({ ref }) => ref },
  { title: "Note", kind: "text", share: 22, value: ({ note }) => note },
  { ...keyColumn, share: 18, narrow: "hidden" }
]

const columns = entryColumns.toSpliced(1, 0, { ...organizationColumn, share: 20 })

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID" },
  {
    kind: "select",
    name: "kind",
    label: "Kind",
    options: [["top_up", "top-up"], "charge", "refund", ["payment_reversal", "payment reversal"], "adjustment"]
  },
  { kind: "range" },
  { kind: "text", name: "hold", label: "Hold", placeholder: "ID" }
]

export const Ledger = () => {
  const query = useFilters(filters)
  return (
    <Page title="Ledger" actions={<ExportButton path="/ledger" query={query} />}>
      <Verify />
      <ListPage frame={Section} title="Entries" path="/ledger" filters={filters} nouns="entries" columns={columns} />
    </Page>
  )
}

export type OpenHold = typeof OpenHoldSchema.Encoded

const tones: Readonly<Record<OpenHold["waits_for"], Tone>> = {
  request: "soft",
  video: "soft",
  refund: "warn",
  sweep: "warn",
  nothing: "bad"
}

export const holdColumns: ReadonlyArray<Column<OpenHold>> = [
  { title: "Created", kind: "custom", value: ({ created_at }) => <Time at={created_at} isRelative /> },
  { title: "Amount", kind: "usd", narrow: "side", value: ({ amount_usd }) => amount_usd },
  { title: "Waiting for", kind: "status", value: ({ waits_for }) => ({ text: waits_for, tone: tones[waits_for] }) },
  { title: "Reason", kind: "text", share: 40, value: ({ detail }) => detail },
  { title: "Model", kind: "code", narrow: "main", share: 26, value: ({ model }) => model },
  { ...keyColumn, share: 10 },
  {
    title: "Video",
    kind: "link",
    value: ({ video }) => (video === null ? null : { href: link(["videos", video]), text: shorten(video, 16) })
  },
  { title: "Hold", kind: "code", share: 8, narrow: "hidden", value: ({ id }) => id }
]

const holdFilters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID" },
  {
    kind: "select",
    name: "older_than",
    label: "Older than",
    options: [
      ["1m", "1 minute"],
      ["10m", "10 minutes"],
      ["1h", "1 hour"],
      ["2h", "2 hours"]
    ]
  }
]

const columnsWithOrganization = holdColumns.toSpliced(1, 0, { ...organizationColumn, share: 16 })

export const Holds = () => (
  <ListPage
    title="Open holds"
    path="/ledger/holds"
    filters={holdFilters}
    hasCsv
    hasRefresh
    empty="No open holds."
    columns={columnsWithOrganization}
  />
)
