import { useEffect, useRef, useState } from "preact/hooks"
import type { ApiError } from "../../api/ApiError.ts"
import { addressOf, get, type QueryValues } from "../../api/Client.ts"
import { asApiError, type PageAnswer, usePages, usePolling } from "../../api/useResource.ts"
import { addUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { ErrorBox, Loading } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar, useFilters } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { type Column, keyColumn, organizationColumn, Pager, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, Charge, shorten } from "../../parts/Values.tsx"
import { type RequestRecord, statusOf } from "./Outcome.ts"
import { arrivals, type Listed, merge } from "./Tail.ts"

const everySeconds = 3
const polled = 200
/** With more than these the list starts anew. */
const maxTail = 2000

interface Tail<Row> {
  readonly address: string
  readonly shown: ReadonlyArray<Row>
  readonly waiting: ReadonlyArray<Row>
  /** Others may lie between those that wait and those that are shown. */
  readonly hasGap: boolean
  readonly error?: ApiError
}

/** A list that grows at its top while it is live; new rows wait while somebody reads. */
const useTail = <Row extends Listed>(path: string, query: QueryValues, isLive: boolean, isReading: () => boolean) => {
  const pages = usePages<Row>(path, query)
  const address = addressOf(path, query)
  const empty: Tail<Row> = { address, shown: [], waiting: [], hasGap: false }
  const [state, setState] = useState(empty)
  const tail = state.address === address ? state : empty
  const latest = useRef({ pages, tail })
  latest.current = { pages, tail }
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [address, isLive])

  const startAnew = () => {
    setState(empty)
    latest.current.pages.refresh()
  }

  const receive = ({ data, has_more }: PageAnswer<Row>) => {
    const { pages, tail } = latest.current
    const known = merge(pages.rows, tail.shown)
    const more = { afterKnown: pages.hasMore, afterNewest: has_more }
    const { changed, fresh, isGap } = arrivals(known, data, more)
    const hasGap = isGap || known.length + fresh.length > maxTail
    const shown = merge(tail.shown, changed)
    if (isReading()) return setState({ address, shown, waiting: fresh, hasGap })
    return hasGap ? startAnew() : setState({ ...empty, shown: merge(shown, fresh) })
  }

  const poll = async (signal: AbortSignal) => {
    try {
      const page = await get<PageAnswer<Row>>(path, { ...query, limit: polled }, signal)
      if (!signal.aborted) receive(page)
    } catch (error) {
      if (!signal.aborted) setState({ ...latest.current.tail, error: asApiError(error) })
    }
    if (controller.current?.signal === signal) controller.current = undefined
  }

  usePolling(isLive ? everySeconds : undefined, () => {
    const isAsking = controller.current !== undefined && !controller.current.signal.aborted
    if (isAsking || latest.current.pages.isLoading) return
    controller.current = new AbortController()
    void poll(controller.current.signal)
  })

  return {
    pages: { ...pages, rows: merge(pages.rows, tail.shown), error: pages.error ?? tail.error },
    waiting: tail.waiting.length,
    showWaiting: () => (tail.hasGap ? startAnew() : setState({ ...empty, shown: merge(tail.shown, tail.waiting) }))
  }
}

const maxShown = 80

/** Without the model's name, which most routes begin with. */
const shortRoute = (route: string, model: string | null): string =>
  model !== null && route.startsWith(`${model}@`) ? route.slice(model.length + 1) : route

const Route = ({ row: { attempts, model, route } }: { readonly row: RequestRecord }) => {
  const failed = attempts.filter(({ outcome }) => outcome !== "ok").length
  if (route === null && failed === 0) return <span class="soft">–</span>
  return (
    <span class="route">
      {route !== null && <code>{shortRoute(route, model)}</code>}{" "}
      {failed > 0 && <Badge tone="warn">{failed === 1 ? "1 failed" : `${failed} failed`}</Badge>}
    </span>
  )
}

const columns: ReadonlyArray<Column<RequestRecord>> = [
  timeColumn("requests", ({ at }) => at),
  {
    title: "Status",
    kind: "status",
    share: 30,
    value: ({ code, status }) => statusOf(status, code),
    hint: ({ code, error, status }) => error?.message ?? statusOf(status, code).text
  },
  { ...organizationColumn, share: 17 },
  { title: "Model", kind: "code", share: 19, value: ({ model }) => model && shorten(model, maxShown) },
  {
    title: "Route",
    kind: "custom",
    isInternal: true,
    share: 23,
    value: (row) => <Route row={row} />,
    hint: ({ route }) => route
  },
  {
    title: "Charge",
    kind: "custom",
    isAmount: true,
    value: ({ charge_usd, refunded_usd }) => (
      <Charge charged={addUsd(charge_usd, refunded_usd)} refunded={refunded_usd} />
    )
  },
  { title: "Took", kind: "amount", value: ({ total_ms }) => formatMillis(total_ms) },
  { title: "Tokens", kind: "number", value: ({ usage }) => usage?.total_tokens },
  { ...keyColumn, share: 11 }
]

const filters: ReadonlyArray<Filter> = [
  { kind: "range" },
  {
    kind: "select",
    name: "status",
    label: "Status",
    options: ["ok", "error", "4xx", "5xx", "400", "401", "402", "403", "404", "429", "499", "502", "503", "504"]
  },
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "text", name: "key", label: "Key", placeholder: "key_…" },
  { kind: "text", name: "model", label: "Model" },
  { kind: "text", name: "route", label: "Route", placeholder: "model@provider", isInternal: true },
  { kind: "select", name: "surface", label: "Surface", options: ["chat", "image", "video"] },
  { kind: "text", name: "tag", label: "Tag" },
  { kind: "text", name: "user", label: "End user" },
  { kind: "text", name: "code", label: "Error code" },
  { kind: "text", name: "address", label: "Address", placeholder: "address or CIDR", isInternal: true },
  { kind: "text", name: "search", label: "Request id", placeholder: "req_…" }
]

/** Rows that move would be missed by who points at them, selects text or has scrolled down. */
const isRead = (list: HTMLElement | null): boolean =>
  list !== null &&
  (scrollY > 0 ||
    list.matches(":hover") ||
    list.contains(document.activeElement) ||
    list.querySelector(".table")?.scrollTop !== 0 ||
    (getSelection()?.isCollapsed === false && list.contains(getSelection()?.anchorNode ?? null)))

export const Requests = () => {
  const asked = useFilters(filters)
  const [isPaused, setPaused] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  // A search for an address looks through many rows.
  const canBeLive = asked["until"] === undefined && asked["address"] === undefined
  const isLive = !isPaused && canBeLive
  const { pages, showWaiting, waiting } = useTail<RequestRecord>("/requests", asked, isLive, () => isRead(list.current))
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
      actions={
        <a class="button" href={addressOf("/requests.csv", asked)} download>
          CSV
        </a>
      }
    >
      <FilterBar filters={filters} />
      {pages.error && <ErrorBox error={pages.error} retry={pages.refresh} />}
      <div class="news" role="status">
        {waiting > 0 && (
          <button class="plain" onClick={showWaiting}>
            Show {waiting} new
          </button>
        )}
      </div>
      {pages.first === undefined && pages.isLoading && <Loading />}
      {pages.first !== undefined && (
        <>
          <div ref={list} class="requests">
            <Table label="Requests" rows={pages.rows} columns={columns} empty="No request matches." />
          </div>
          {pages.rows.length > 0 && <Pager pages={pages} />}
        </>
      )}
    </Page>
  )
}
