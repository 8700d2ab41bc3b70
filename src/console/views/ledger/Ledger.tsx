import { useEffect, useRef, useState } from "preact/hooks"
import { nounFor } from "../../../domain/Plural.ts"
import type { LastLine, ProofLine } from "../../../http/admin/Ledger.ts"
import type { ApiError } from "../../api/ApiError.ts"
import { readLines } from "../../api/Client.ts"
import { asApiError, useResource } from "../../api/useResource.ts"
import { formatCount, formatCounted } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { ErrorBox } from "../../parts/Feedback.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { type Column, keyColumn, organizationColumn, Table } from "../../parts/Table.tsx"
import { Badge, shorten, Time } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import type { ListedEntry } from "../organizations/records.ts"

type Proof = typeof ProofLine.Encoded
type End = typeof LastLine.Encoded

type Run =
  | { readonly is: "running"; readonly proofs: ReadonlyArray<Proof> }
  | { readonly is: "cut off"; readonly proofs: ReadonlyArray<Proof> }
  | { readonly is: "failed"; readonly proofs: ReadonlyArray<Proof>; readonly error: ApiError }
  | { readonly is: "over"; readonly proofs: ReadonlyArray<Proof>; readonly end: End }

const useRun = () => {
  const [run, setRun] = useState<Run>()
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const start = async () => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const proofs: Array<Proof> = []
    let end: End | undefined
    setRun({ is: "running", proofs: [] })
    try {
      await readLines<Proof | End>(
        "/ledger/verify",
        (line) => {
          if ("done" in line) end = line
          else {
            proofs.push(line)
            setRun({ is: "running", proofs: [...proofs] })
          }
        },
        signal
      )
    } catch (error) {
      if (!signal.aborted) setRun({ is: "failed", proofs, error: asApiError(error) })
      return
    }
    setRun(end === undefined ? { is: "cut off", proofs } : { is: "over", proofs, end })
  }
  const stop = () => {
    controller.current?.abort()
    setRun(undefined)
  }
  return [run, start, stop] as const
}

const Broken = ({ count, invariant, violations }: Proof) => (
  <Section title={`Broken: ${invariant}`}>
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
        The first {formatCount(violations.length)} of {formatCounted(count, "row")}.
      </p>
    )}
  </Section>
)

const Conclusion = ({ run }: { readonly run: Run }) => {
  if (run.is === "failed") return <ErrorBox error={run.error} />
  if (run.is === "cut off") return <p class="problem">The proof broke off: nothing is proved. Verify again.</p>
  if (run.is === "running") return <p class="soft">Reading the whole ledger…</p>
  const { at, entries, holds, holds_true, organizations } = run.end
  const over = `${formatCounted(organizations, "organization")}, ${formatCounted(entries, "entry", "entries")} and ${formatCounted(holds, "hold")}`
  const broken = run.proofs.filter(({ count }) => count > 0).length
  return holds_true && broken === 0 ? (
    <p>
      <Badge tone="good">proved</Badge> Every one of {run.proofs.length} invariants holds over {over}, as of{" "}
      <Time at={at} />.
    </p>
  ) : (
    <p class="problem">
      The ledger is broken: {broken} of {formatCounted(run.proofs.length, "invariant")} {nounFor(broken, "does", "do")}{" "}
      not hold over {over}, as of <Time at={at} />.
    </p>
  )
}

/** Proves every invariant over the whole database, as `gateway ledger verify` does. */
const Verify = () => {
  const [run, start, stop] = useRun()
  const isRunning = run?.is === "running"
  const names = useResource<{ readonly data: ReadonlyArray<string> }>("/ledger/invariants")
  const proofs = new Map(run?.proofs.map((proof) => [proof.invariant, proof]))
  const rows = [...new Set([...(names.data?.data ?? []), ...proofs.keys()])]
  return (
    <Section
      title="Proof"
      actions={
        isRunning ? (
          <button onClick={stop}>Stop</button>
        ) : (
          <button onClick={() => void start()}>{run === undefined ? "Verify" : "Verify again"}</button>
        )
      }
    >
      {run === undefined ? (
        <p class="soft">
          Proves every invariant over the whole ledger. It reads all of it: minutes, where there are millions of
          entries.
        </p>
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
                    <Badge>{isRunning ? "waiting" : "not proved"}</Badge>
                  ) : proof.count === 0 ? (
                    <Badge tone="good">holds</Badge>
                  ) : (
                    <Badge tone="bad">{`${formatCount(proof.count)} broken`}</Badge>
                  )}
                  <span>{name}</span>
                  <span class="soft">{proof && formatMillis(proof.ms)}</span>
                </li>
              )
            })}
          </ol>
          {run.proofs.flatMap((proof) => (proof.count > 0 ? [<Broken key={proof.invariant} {...proof} />] : []))}
        </>
      )}
    </Section>
  )
}

const kinds: Readonly<Record<string, string>> = { top_up: "top-up", payment_reversal: "payment reversal" }

export const entryColumns: ReadonlyArray<Column<ListedEntry>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  { title: "Kind", kind: "text", value: ({ kind }) => kinds[kind] ?? kind },
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
  { ...keyColumn, share: 18 }
]

const columns = entryColumns.toSpliced(1, 0, { ...organizationColumn, share: 20 })

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
  {
    kind: "select",
    name: "kind",
    label: "Kind",
    options: [["top_up", "top-up"], "charge", "refund", ["payment_reversal", "payment reversal"], "adjustment"]
  },
  { kind: "range" },
  { kind: "text", name: "hold", label: "Hold", placeholder: "id" }
]

export const Ledger = () => (
  <Page title="Ledger">
    <Verify />
    <ListPage
      frame={Section}
      title="Entries"
      path="/ledger"
      filters={filters}
      hasCsv
      empty="No entry matches."
      columns={columns}
    />
  </Page>
)
