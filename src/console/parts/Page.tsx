import type { ComponentChildren, ComponentProps } from "preact"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import { addressOf, type QueryValues } from "../api/ApiClient.ts"
import { usePages } from "../api/useResource.ts"
import { wasNavigated } from "../BrowserState.ts"
import { useIsHidden } from "../SignedIn.ts"
import { type Filter, FilterBar, useFilters } from "./FilterBar.tsx"
import { PagedTable, type Table } from "./Table.tsx"

/** A view with its heading, which gets the focus after navigation from another view. */
export const Page = ({
  actions,
  children,
  lead,
  recordId,
  title
}: {
  readonly title: string
  /** The id of the record that the page shows, below the heading. */
  readonly recordId?: string | undefined
  /** Beside the heading, such as a badge. */
  readonly lead?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${recordId === undefined ? title : `${title} ${recordId}`} · Gateway`
  }, [title, recordId])
  useLayoutEffect(() => {
    if (!wasNavigated()) return
    scrollTo(0, 0)
    heading.current?.focus({ preventScroll: true })
  }, [])
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {lead}
        <div class="actions">{actions}</div>
        {recordId && (
          <code class="soft record-id">
            <bdi>{recordId}</bdi>
          </code>
        )}
      </div>
      {children}
    </>
  )
}

export const Section = ({
  actions,
  children,
  isInternal,
  title
}: {
  readonly title: string
  readonly actions?: ComponentChildren
  /** Hidden from members. */
  readonly isInternal?: boolean
  readonly children: ComponentChildren
}) =>
  useIsHidden(isInternal) ? null : (
    <section class="section" aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        <div class="actions">{actions}</div>
      </div>
      {children}
    </section>
  )

/** Downloads everything that matches the query. It is the last action of its page. */
export const ExportButton = ({ path, query }: { readonly path: string; readonly query: QueryValues }) => (
  <a class="button" href={addressOf(`${path}.csv`, query)} download>
    Export CSV
  </a>
)

/** A paged list with its filters: a view, or a section of one. */
export const ListPage = <Row extends object>({
  actions,
  filters,
  frame: Frame = Page,
  hasCsv = false,
  hasRefresh = false,
  path,
  title,
  ...table
}: Omit<ComponentProps<typeof Table<Row>>, "rows" | "label"> & {
  readonly title: string
  /** The name of the table, by default the title. */
  readonly label?: string
  readonly path: string
  readonly filters: ReadonlyArray<Filter>
  readonly frame?: typeof Section
  /** Whether the gateway serves the list as CSV at `path` with `.csv`. */
  readonly hasCsv?: boolean
  readonly hasRefresh?: boolean
  readonly actions?: ComponentChildren
}) => {
  const query = useFilters(filters)
  const pages = usePages<Row>(path, query)
  return (
    <Frame
      title={title}
      actions={
        <>
          {actions}
          {hasRefresh && <button onClick={pages.refresh}>Refresh</button>}
          {hasCsv && <ExportButton path={path} query={query} />}
        </>
      }
    >
      <FilterBar filters={filters} />
      <PagedTable label={title} {...table} pages={pages} />
    </Frame>
  )
}
