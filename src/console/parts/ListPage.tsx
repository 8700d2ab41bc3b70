import type { ComponentChildren, ComponentProps } from "preact"
import { addressOf, type QueryValues } from "../api/ApiClient.ts"
import { usePages } from "../api/useResource.ts"
import { type Filter, FilterBar, useFilters } from "./FilterBar.tsx"
import { Page, type Section } from "./Page.tsx"
import { PagedTable, type Table } from "./Table.tsx"

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
