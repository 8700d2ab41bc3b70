import type { ComponentChildren } from "preact"
import { link } from "../Route.ts"
import { useRole } from "../Session.ts"
import type { Column } from "./Table.tsx"
import { Time } from "./Values.tsx"

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
