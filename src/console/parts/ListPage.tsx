import type { ComponentChildren, ComponentProps } from "preact"
import { addressOf } from "../api/Client.ts"
import { usePages } from "../api/useResource.ts"
import { type Filter, FilterBar, useFilters } from "./FilterBar.tsx"
import { Page, type Section } from "./Page.tsx"
import { PagedTable, type Table } from "./Table.tsx"

/** A list that comes in pages, below the filters that choose its rows: a view, or a section of one. */
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
  /** What the table is called, where not like the view. */
  readonly label?: string
  readonly path: string
  readonly filters: ReadonlyArray<Filter>
  readonly frame?: typeof Section
  /** Whether the gateway has the list as CSV, beside its path. */
  readonly hasCsv?: boolean
  readonly hasRefresh?: boolean
  readonly actions?: ComponentChildren
}) => {
  const asked = useFilters(filters)
  const pages = usePages<Row>(path, asked)
  return (
    <Frame
      title={title}
      actions={
        <>
          {hasCsv && (
            <a href={addressOf(`${path}.csv`, asked)} download>
              CSV of all that match
            </a>
          )}
          {hasRefresh && <button onClick={pages.refresh}>Refresh</button>}
          {actions}
        </>
      }
    >
      <FilterBar filters={filters} />
      <PagedTable label={title} {...table} pages={pages} />
    </Frame>
  )
}
