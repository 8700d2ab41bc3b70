import type { ComponentChildren, ComponentProps } from "preact"
import type { Pages } from "../api/useResource.ts"
import { useRoute } from "../BrowserState.ts"
import { formatCount, partsOfUsd } from "../format/Amount.ts"
import { link } from "../Route.ts"
import { useHasRole, useVisible } from "../SignedIn.ts"
import { Empty, ErrorBox, Loading } from "./Feedback.tsx"
import type { Status } from "./Status.ts"
import { Badge, Charge, Long, type NetCharge, netOf, shorten, Time, Usd } from "./Values.tsx"

export const Pager = ({ pages }: { readonly pages: Omit<Pages<unknown>, "first"> }) => (
  <div class="pager">
    <span class="soft" role="status">
      {pages.isLoading ? "Loading…" : `${formatCount(pages.rows.length)}${pages.hasMore ? " loaded" : " total"}`}
      {!pages.isLoading && pages.isCutShort && ". The search paused at its row limit."}
    </span>
    {pages.hasMore && (
      <button onClick={pages.loadMore} disabled={pages.isLoading}>
        {pages.isCutShort ? "Search older requests" : "Load more"}
      </button>
    )}
  </div>
)

type Cell<Row> =
  /** An amount is text, aligned like a number. */
  | { readonly kind: "text" | "code" | "amount"; readonly value: (row: Row) => string | null | undefined }
  | { readonly kind: "number" | "time"; readonly value: (row: Row) => number | null | undefined }
  | {
      readonly kind: "usd"
      readonly value: (row: Row) => number | NetCharge | null | undefined
      /** The text of a missing amount, by default a dash. */
      readonly none?: string | ((row: Row) => string | undefined)
    }
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
  /** Hidden from members. */
  readonly isInternal?: boolean
  /** The address that sorts by this column, if the server can. */
  readonly sortHref?: string
  readonly isSorted?: boolean
  /** Whether a custom cell is aligned like a number. */
  readonly isAmount?: boolean | undefined
  /**
   * The place in the two lines of a narrow page. The first line has the main cell and an amount, by default the first
   * column and the first amount. The second line has all others that are not hidden.
   */
  readonly narrow?: "main" | "side" | "hidden" | "detail"
  /** Whether a narrow page shows the title before the cell, as it does for amounts and numbers. */
  readonly isLabelled?: boolean
  /** The percentage of the free width. On wide pages each row is one line, so the cell may be cut. */
  readonly share?: number
  /** The tooltip of a cut cell, by default its text. */
  readonly hint?: (row: Row) => string | null | undefined
}

const maxLinkLength = 60

const noValue = <span class="soft">–</span>

const renderCell = <Row,>(column: Column<Row>, row: Row): ComponentChildren => {
  switch (column.kind) {
    case "usd": {
      const amount = column.value(row)
      if (typeof amount === "object" && amount !== null) return <Charge {...amount} />
      return <Usd amount={amount} none={typeof column.none === "function" ? column.none(row) : column.none} />
    }
    case "time":
      return <Time at={column.value(row)} />
    case "number": {
      const count = column.value(row)
      return count === null || count === undefined ? noValue : formatCount(count)
    }
    case "code": {
      const code = column.value(row)
      return code ? <code>{code}</code> : noValue
    }
    case "link": {
      const target = column.value(row)
      return target ? (
        <a href={target.href} {...(target.text.length > maxLinkLength && { title: target.text })}>
          <bdi>{shorten(target.text, maxLinkLength)}</bdi>
        </a>
      ) : (
        noValue
      )
    }
    case "status": {
      const status = column.value(row)
      return status ? <Badge tone={status.tone}>{status.text}</Badge> : noValue
    }
    case "text": {
      const text = column.value(row)
      return text ? <Long text={text} /> : noValue
    }
    default:
      return column.value(row) ?? noValue
  }
}

const textOf = <Row,>(column: Column<Row>, row: Row): string | null | undefined => {
  if (column.hint !== undefined) return column.hint(row)
  if (column.kind === "link" || column.kind === "status") return column.value(row)?.text
  return column.kind === "text" || column.kind === "code" ? column.value(row) : undefined
}

const classOf = ({ isAmount, kind, share }: Pick<Column<never>, "kind" | "isAmount" | "share">) =>
  `${isAmount || kind === "number" || kind === "usd" ? "amount" : kind}${share === undefined ? "" : " share"}`

/** Returns the places of the columns on a narrow page, as class names. */
const placesOf = <Row,>(columns: ReadonlyArray<Column<Row>>): ReadonlyArray<string> => {
  const find = (place: Column<Row>["narrow"], otherwise: number) => {
    const chosen = columns.findIndex(({ narrow }) => narrow === place)
    return chosen === -1 ? otherwise : chosen
  }
  const main = find("main", 0)
  const firstAmount = columns.findIndex(({ kind, narrow }) => kind === "usd" && narrow === undefined)
  const side = find("side", firstAmount)
  return columns.map(
    ({ narrow = "detail" }, index) => `at-${index === main ? "main" : index === side ? "side" : narrow}`
  )
}

/** Returns the maximum number of decimals of a column's amounts. */
const decimalsIn = <Row,>(column: Column<Row>, rows: ReadonlyArray<Row>): number | undefined => {
  if (column.kind !== "usd") return undefined
  const lengths = rows.map((row) => {
    const value = column.value(row)
    const amount = typeof value === "object" && value !== null ? netOf(value) : value
    return amount === null || amount === undefined ? 0 : partsOfUsd(amount).decimals.length
  })
  return Math.max(2, ...lengths)
}

const isMissing = <Row,>(column: Column<Row>, row: Row): boolean => {
  const value = column.value(row)
  return (
    (value === null || value === undefined || value === "" || value === false) &&
    !(column.kind === "usd" && column.none !== undefined)
  )
}

/** The parts of the address that group or sort a list, but hide no row. */
const arrangements: ReadonlySet<string> = new Set(["by", "and", "sort"])

const idOf = (row: object): string => ("id" in row ? String(row.id) : JSON.stringify(row))

/** Rows keep the order of the server. On narrow pages each row is an item of two lines. */
export const Table = <Row extends object>({
  columns: all,
  empty,
  label,
  nouns,
  rowKey = idOf,
  rows,
  total
}: {
  readonly label: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  /** By default the id of the row. */
  readonly rowKey?: (row: Row) => string | number
  /** The text if there are no rows. */
  readonly empty?: ComponentChildren
  /** What a list with filters contains, such as `requests`. Its text without rows depends on the filters. */
  readonly nouns?: string
  /** The last row. */
  readonly total?: Row | undefined
}) => {
  const columns = useVisible(all)
  const isFiltered = Object.keys(useRoute().query).some((name) => !arrangements.has(name))
  if (rows.length === 0) {
    return <Empty>{nouns === undefined ? (empty ?? "No data.") : `No ${nouns} ${isFiltered ? "match" : "yet"}.`}</Empty>
  }
  const places = placesOf(columns)
  const allRows = total === undefined ? rows : [...rows, total]
  const decimals = columns.map((column) => decimalsIn(column, allRows))
  const hasLines = columns.some(({ share }) => share !== undefined)
  const cells = (row: Row) =>
    columns.map((column, index) => (
      <td
        key={column.title}
        class={`${classOf(column)} ${places[index]}${column.isLabelled ? " labelled" : ""}${isMissing(column, row) ? " missing" : ""}`}
        style={decimals[index] === undefined ? undefined : { "--decimals": decimals[index] }}
        data-label={column.title}
        title={column.share === undefined ? undefined : (textOf(column, row) ?? undefined)}
      >
        {renderCell(column, row)}
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

/** The rows loaded so far, with a button for more. Rows stay below an error. */
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
        {(pages.rows.length > 0 || pages.hasMore) && <Pager pages={pages} />}
      </>
    )}
  </>
)

/** A link with the name of the organization, or its id if the name is unknown. */
export const organizationColumn: Column<{ readonly org: string | null; readonly org_name: string | null }> = {
  title: "Organization",
  kind: "link",
  isInternal: true,
  value: ({ org, org_name }) => (org === null ? null : { href: link(["organizations", org]), text: org_name ?? org })
}

/** Shows the name of the key, or its id if it has none. */
export const keyColumn: Column<{ readonly key_id: string | null; readonly key_name: string | null }> = {
  title: "Key",
  kind: "text",
  value: ({ key_id, key_name }) => key_name || key_id,
  hint: ({ key_id }) => key_id
}

/** Links to the page of the row in the view. */
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

/** Adds a column of actions if the role allows them. */
export const useActions = <Row,>(
  columns: ReadonlyArray<Column<Row>>,
  actions: (row: Row) => ComponentChildren,
  canChange = true
): ReadonlyArray<Column<Row>> =>
  useHasRole("write") && canChange ? [...columns, { title: "Actions", kind: "custom", value: actions }] : columns
