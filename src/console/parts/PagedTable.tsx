import type { ComponentProps } from "preact"
import type { Page, Pages } from "../api/usePages.ts"
import { Loading } from "./Empty.tsx"
import { ErrorBox } from "./ErrorBox.tsx"
import { Pager } from "./Pager.tsx"
import { Table } from "./Table.tsx"

/** A list so far, and more of it at request; old rows stay below an error. */
export const PagedTable = <Row,>({
  pages,
  ...table
}: Omit<ComponentProps<typeof Table<Row>>, "rows"> & { readonly pages: Pages<Row, Page<Row>> }) => (
  <>
    {pages.error && <ErrorBox error={pages.error} retry={pages.refresh} />}
    {pages.first === undefined ? (
      pages.error === undefined && <Loading />
    ) : (
      <>
        <Table<Row> {...table} rows={pages.rows} />
        {pages.rows.length > 0 && <Pager pages={pages} />}
      </>
    )}
  </>
)
