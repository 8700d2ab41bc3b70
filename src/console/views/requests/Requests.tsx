import { useEffect, useRef, useState } from "preact/hooks"
import { addressOf, get, type QueryValues } from "../../api/ApiClient.ts"
import type { ApiError } from "../../api/ApiError.ts"
import { asApiError, type PageAnswer, usePages, usePolling } from "../../api/useResource.ts"
import { addUsd, formatCounted } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { ErrorBox, Loading } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar, useFilters } from "../../parts/FilterBar.tsx"
import { ExportButton, Page } from "../../parts/Page.tsx"
import { type Column, keyColumn, organizationColumn, Pager, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, shorten } from "../../parts/Values.tsx"
import { findArrivals, type Identified, merge, type RequestRecord, shortRoute, statusOf } from "./RequestRows.ts"

const everySeconds = 3
const pollLimit = 200
/** A list that grows beyond this number of rows reloads its first page. */
const maxTail = 2000

interface Tail<Row> {
  readonly address: string
  readonly visible: ReadonlyArray<Row>
  readonly waiting: ReadonlyArray<Row>
  /** Whether rows between the waiting and the visible ones may be missing. */
  readonly hasGap: boolean
  readonly error?: ApiError
}

/** A live list. While the user reads it, new rows wait behind a button. */
const useTail = <Row extends Identified>(
  path: string,
  query: QueryValues,
  isLive: boolean,
  isReading: () => boolean
) => {
  const pages = usePages<Row>(path, query)
  const address = addressOf(path, query)
  const empty: Tail<Row> = { address, visible: [], waiting: [], hasGap: false }
  const [state, setState] = useState(empty)
  const tail = state.address === address ? state : empty
  const latest = useRef({ pages, tail })
  latest.current = { pages, tail }
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [address, isLive])

  const reload = () => {
    setState(empty)
    latest.current.pages.refresh()
  }

  const receive = ({ data, has_more }: PageAnswer<Row>) => {
    const { pages, tail } = latest.current
    const rows = merge(pages.rows, tail.visible)
    const more = { hasMoreRows: pages.hasMore, hasMoreNewest: has_more }
    const { arrivals, isGap, updates } = findArrivals(rows, data, more)
    const hasGap = isGap || rows.length + arrivals.length > maxTail
    const visible = merge(tail.visible, updates)
    if (isReading()) return setState({ address, visible, waiting: arrivals, hasGap })
    return hasGap ? reload() : setState({ ...empty, visible: merge(visible, arrivals) })
  }

  const poll = async (signal: AbortSignal) => {
    try {
      const page = await get<PageAnswer<Row>>(path, { ...query, limit: pollLimit }, signal)
      if (!signal.aborted) receive(page)
    } catch (error) {
      if (!signal.aborted) setState({ ...latest.current.tail, error: asApiError(error) })
    }
    if (controller.current?.signal === signal) controller.current = undefined
  }

  usePolling(isLive ? everySeconds : undefined, () => {
    const isPolling = controller.current !== undefined && !controller.current.signal.aborted
    if (isPolling || latest.current.pages.isLoading) return
    controller.current = new AbortController()
    void poll(controller.current.signal)
  })

  return {
    pages: { ...pages, rows: merge(pages.rows, tail.visible), error: pages.error ?? tail.error },
    waiting: tail.waiting.length,
    showWaiting: () => (tail.hasGap ? reload() : setState({ ...empty, visible: merge(tail.visible, tail.waiting) }))
  }
}

const maxModelLength = 80

const countFailures = ({ attempts }: RequestRecord): number => attempts.filter(({ outcome }) => outcome !== "ok").length

const Route = ({ row }: { readonly row: RequestRecord }) => {
  const { model, route } = row
  const failedCount = countFailures(row)
  if (route === null && failedCount === 0) return <span class="soft">–</span>
  return (
    <span class="route">
      {route !== null && <code>{shortRoute(route, model)}</code>}{" "}
      {failedCount > 0 && <Badge tone="warn">{formatCounted(failedCount, "failure")}</Badge>}
    </span>
  )
}

const columns: ReadonlyArray<Column<RequestRecord>> = [
  timeColumn("requests", ({ at }) => at),
  {
    title: "Status",
    kind: "status",
    share: 30,
    value: ({ code, status, video_status }) => statusOf(status, code, video_status),
    hint: ({ code, error, status, video_status }) => error?.message ?? statusOf(status, code, video_status).text
  },
  { ...organizationColumn, share: 17 },
  {
    title: "Model",
    kind: "code",
    narrow: "main",
    share: 18,
    value: ({ model }) => model && shorten(model, maxModelLength)
  },
  {
    title: "Route",
    kind: "custom",
    isInternal: true,
    share: 24,
    narrow: "hidden",
    value: (row) => <Route row={row} />,
    hint: (row) => {
      const failedCount = countFailures(row)
      return failedCount === 0
        ? row.route
        : `${row.route ?? "no route"}, ${formatCounted(failedCount, "failed attempt")}`
    }
  },
  {
    title: "Charge",
    kind: "usd",
    none: "pending",
    value: ({ charge_usd, refunded_usd, video_status }) =>
      video_status === "queued" || video_status === "in_progress"
        ? null
        : { charge: addUsd(charge_usd, refunded_usd), refund: refunded_usd }
  },
  { title: "Duration", kind: "amount", narrow: "hidden", value: ({ total_ms }) => formatMillis(total_ms) },
  { title: "Tokens", kind: "number", narrow: "hidden", value: ({ usage }) => usage?.total_tokens },
  { ...keyColumn, share: 11, narrow: "hidden" }
]

const filters: ReadonlyArray<Filter> = [
  { kind: "range" },
  {
    kind: "select",
    name: "status",
    label: "Status",
    options: [
      "ok",
      "error",
      "rejected",
      "4xx",
      "5xx",
      "400",
      "401",
      "402",
      "403",
      "404",
      "429",
      "499",
      "502",
      "503",
      "504"
    ]
  },
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID", isInternal: true },
  { kind: "text", name: "key", label: "Key", placeholder: "key_…" },
  { kind: "text", name: "model", label: "Model" },
  { kind: "text", name: "route", label: "Route", placeholder: "model@provider", isInternal: true },
  { kind: "select", name: "surface", label: "Endpoint type", options: ["chat", "image", "video"] },
  { kind: "text", name: "tag", label: "Tag" },
  { kind: "text", name: "user", label: "End user" },
  { kind: "text", name: "code", label: "Error code" },
  { kind: "text", name: "address", label: "IP address", placeholder: "IP address or CIDR", isInternal: true },
  { kind: "text", name: "search", label: "Request ID", placeholder: "req_…" }
]

/** Rows must not move while the user points at them, selects text or has scrolled down. */
const isRead = (list: HTMLElement | null): boolean =>
  list !== null &&
  (scrollY > 0 ||
    list.matches(":hover") ||
    list.contains(document.activeElement) ||
    list.querySelector(".table")?.scrollTop !== 0 ||
    (getSelection()?.isCollapsed === false && list.contains(getSelection()?.anchorNode ?? null)))

export const Requests = () => {
  const query = useFilters(filters)
  const [isPaused, setPaused] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  // A filter by address scans too many rows to poll.
  const canBeLive = query["until"] === undefined && query["address"] === undefined
  const isLive = !isPaused && canBeLive
  const { pages, showWaiting, waiting } = useTail<RequestRecord>("/requests", query, isLive, () => isRead(list.current))
  return (
    <Page
      title="Requests"
      lead={
        canBeLive && (
          <button class="live" aria-pressed={!isPaused} onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Paused" : "Live"}
          </button>
        )
      }
      actions={<ExportButton path="/requests" query={query} />}
    >
      <FilterBar filters={filters} />
      {pages.error && <ErrorBox error={pages.error} retry={pages.refresh} />}
      <div class="news" role="status">
        {waiting > 0 && (
          <button class="plain" onClick={showWaiting}>
            Show {formatCounted(waiting, "new request")}
          </button>
        )}
      </div>
      {pages.first === undefined && pages.isLoading && <Loading />}
      {pages.first !== undefined && (
        <>
          <div ref={list} class="requests">
            <Table label="Requests" rows={pages.rows} columns={columns} nouns="requests" />
          </div>
          {(pages.rows.length > 0 || pages.hasMore) && <Pager pages={pages} />}
        </>
      )}
    </Page>
  )
}
