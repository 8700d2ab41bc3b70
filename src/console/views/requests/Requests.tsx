import { useRef, useState } from "preact/hooks"
import { addressOf } from "../../api/Client.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { Loading } from "../../parts/Empty.tsx"
import { ErrorBox } from "../../parts/ErrorBox.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { Pager } from "../../parts/Pager.tsx"
import { Table } from "../../parts/Table.tsx"
import { columns } from "./Columns.tsx"
import type { RequestRecord } from "./RequestRecord.ts"
import { useTail } from "./useTail.ts"

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
  const { query } = useRoute()
  const { since, until } = useRange()
  const { address, code, key, model, organization, route, search, status, surface, tag, user } = query
  const asked = { organization, key, model, route, status, surface, tag, user, code, address, search, since, until }
  const [isPaused, setPaused] = useState(false)
  const list = useRef<HTMLDivElement>(null)
  // A search for an address looks through many rows.
  const canBeLive = until === undefined && address === undefined
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
            <Table
              label="Requests"
              rows={pages.rows}
              rowKey={({ id }) => id}
              columns={columns}
              empty="No request matches."
            />
          </div>
          {pages.rows.length > 0 && <Pager pages={pages} />}
        </>
      )}
    </Page>
  )
}
