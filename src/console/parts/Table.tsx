import type { ComponentChildren, ComponentProps } from "preact"
import type { Pages } from "../api/useResource.ts"
import { formatCount } from "../format/Amount.ts"
import { link } from "../Route.ts"
import { useRole, useVisible } from "../Session.ts"
import { Empty, ErrorBox, Loading } from "./Feedback.tsx"
import type { Status } from "./Status.ts"
import { Badge, Long, shorten, Time, Usd } from "./Values.tsx"

export const Pager = ({ pages }: { readonly pages: Omit<Pages<unknown>, "first"> }) => (
  <div class="pager">
    <span class="soft" role="status">
      {pages.isLoading ? "Loading…" : `${formatCount(pages.rows.length)}${pages.hasMore ? " so far" : " in all"}`}
    </span>
    {pages.hasMore && (
      <button onClick={pages.loadMore} disabled={pages.isLoading}>
        Show more
      </button>
    )}
  </div>
)

type Cell<Row> =
  /** An amount is text that is aligned like a number. */
  | { readonly kind: "text" | "code" | "amount"; readonly value: (row: Row) => string | null | undefined }
  | { readonly kind: "number" | "usd" | "time"; readonly value: (row: Row) => number | null | undefined }
  | {
      readonly kind: "link"
      readonly value: (row: Row) => { readonly href: string; readonly text: string } | null | undefined
    }
  | {
      readonly kind: "status"
      readonly value: (row: Row) => Status | null | undefined
    }
  | { readonly kind: "custom"; readonly value: (row: Row) => ComponentChildren }

export type Column<Row> = Cell<Row> & {
  readonly title: string
  /** Not for members. */
  readonly isInternal?: boolean
  /** Where the server can sort by it: the address that does. */
  readonly sortHref?: string
  readonly isSorted?: boolean
  /** Whether a custom cell is aligned like a number. */
  readonly isAmount?: boolean | undefined
  /** Its percentage of the width, as far as others leave it: on wide pages each row is one line, which is cut there. */
  readonly share?: number
  /** What the pointer shows of what is cut, where not all of its text. */
  readonly hint?: (row: Row) => string | null | undefined
}

const maxLinked = 60

const none = <span class="soft">–</span>

const show = <Row,>(column: Column<Row>, row: Row): ComponentChildren => {
  switch (column.kind) {
    case "usd":
      return <Usd amount={column.value(row)} />
    case "time":
      return <Time at={column.value(row)} />
    case "number": {
      const count = column.value(row)
      return count === null || count === undefined ? none : formatCount(count)
    }
    case "code": {
      const code = column.value(row)
      return code ? <code>{code}</code> : none
    }
    case "link": {
      const target = column.value(row)
      return target ? (
        <a href={target.href} {...(target.text.length > maxLinked && { title: target.text })}>
          <bdi>{shorten(target.text, maxLinked)}</bdi>
        </a>
      ) : (
        none
      )
    }
    case "status": {
      const status = column.value(row)
      return status ? <Badge tone={status.tone}>{status.text}</Badge> : none
    }
    case "text": {
      const text = column.value(row)
      return text ? <Long text={text} /> : none
    }
    default:
      return column.value(row) ?? none
  }
}

const textOf = <Row,>(column: Column<Row>, row: Row): string | null | undefined => {
  if (column.hint !== undefined) return column.hint(row)
  if (column.kind === "link" || column.kind === "status") return column.value(row)?.text
  return column.kind === "text" || column.kind === "code" ? column.value(row) : undefined
}

const classOf = ({ isAmount, kind, share }: Pick<Column<never>, "kind" | "isAmount" | "share">) =>
  `${isAmount || kind === "number" || kind === "usd" ? "amount" : kind}${share === undefined ? "" : " share"}`

const idOf = (row: object): string => ("id" in row ? String(row.id) : JSON.stringify(row))

/** Newest or largest first, as the server has sorted them; at narrow widths each row is a card. */
export const Table = <Row extends object>({
  columns: all,
  empty = "Nothing here.",
  label,
  rowKey = idOf,
  rows,
  total
}: {
  readonly label: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  /** Its id, where not given. */
  readonly rowKey?: (row: Row) => string | number
  readonly empty?: ComponentChildren
  /** Shown last. */
  readonly total?: Row | undefined
}) => {
  const columns = useVisible(all)
  if (rows.length === 0) return <Empty>{empty}</Empty>
  const hasLines = columns.some(({ share }) => share !== undefined)
  const cells = (row: Row) =>
    columns.map((column) => (
      <td
        key={column.title}
        class={classOf(column)}
        data-label={column.title}
        title={column.share === undefined ? undefined : (textOf(column, row) ?? undefined)}
      >
        {show(column, row)}
      </td>
    ))
  return (
    <div class={hasLines ? "table lines" : "table"} role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ isSorted, share, sortHref, title, ...column }) => (
              <th
                key={title}
                scope="col"
                class={classOf(column)}
                style={share === undefined ? undefined : { "--share": `${share}%` }}
                aria-sort={isSorted ? "descending" : undefined}
              >
                {sortHref === undefined ? title : <a href={sortHref}>{title}</a>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>{cells(row)}</tr>
          ))}
        </tbody>
        {total !== undefined && (
          <tfoot>
            <tr>{cells(total)}</tr>
          </tfoot>
        )}
      </table>
    </div>
  )
}

/** A list so far, and more of it at request; old rows stay below an error. */
export const PagedTable = <Row extends object>({
  pages,
  ...table
}: Omit<ComponentProps<typeof Table<Row>>, "rows"> & { readonly pages: Pages<Row> }) => (
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

/** A link; the id stands for an organization without a known name. */
export const organizationColumn: Column<{ readonly org: string | null; readonly org_name: string | null }> = {
  title: "Organization",
  kind: "link",
  isInternal: true,
  value: ({ org, org_name }) => (org === null ? null : { href: link(["organizations", org]), text: org_name ?? org })
}

/** By its name, where it has one. */
export const keyColumn: Column<{ readonly key_id: string | null; readonly key_name: string | null }> = {
  title: "Key",
  kind: "text",
  value: ({ key_id, key_name }) => key_name || key_id,
  hint: ({ key_id }) => key_id
}

/** Leads to the row's own page in the view. */
export const timeColumn = <Row extends { readonly id: string }>(
  view: string,
  timeOf: (row: Row) => number
): Column<Row> => ({
  title: "Time",
  kind: "custom",
  value: (row) => (
    <a class="nowrap" href={link([view, row.id])}>
      <Time at={timeOf(row)} />
    </a>
  )
})

/** The columns, and beside them what may be done with a row, for those who may. */
export const useActions = <Row,>(
  columns: ReadonlyArray<Column<Row>>,
  actions: (row: Row) => ComponentChildren,
  isOpen = true
): ReadonlyArray<Column<Row>> =>
  useRole("write") && isOpen ? [...columns, { title: "Actions", kind: "custom", value: actions }] : columns
