import type { AuditRow as AuditRowSchema } from "../../../services/admin/Audit.ts"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import { type Column, organizationColumn } from "../../parts/Table.tsx"
import { Badge, Long, Time, Usd } from "../../parts/Values.tsx"

/** A value of a record, read by its name. */
const Value = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  if (value === null || value === undefined) return <span class="soft">none</span>
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>
  if (typeof value === "number") {
    if (name.endsWith("_usd")) return <Usd amount={value} />
    return name === "at" || name.endsWith("_at") ? <Time at={value} /> : <>{value}</>
  }
  if (typeof value === "string") return value === "" ? <span class="soft">empty</span> : <Long text={value} />
  return <>{Array.isArray(value) ? value.join(", ") : JSON.stringify(value)}</>
}

interface Change {
  readonly name: string
  readonly was: unknown
  readonly is: unknown
}

const fieldsOf = (record: unknown): ReadonlyMap<string, unknown> =>
  new Map(typeof record === "object" && record !== null ? Object.entries(record) : [])

/** Fields that the audit has a column for, or that no operator chose. */
const known = new Set(["id", "org", "org_name", "at", "created_at"])

const isChosen = (name: string, value: unknown) => !known.has(name) && value !== null && value !== false && value !== 0

/** The fields that differ; of a new record those that say something. */
const differenceOf = (before: unknown, after: unknown): ReadonlyArray<Change> => {
  const was = fieldsOf(before)
  const is = fieldsOf(after)
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((name) => {
    const change = { name, was: was.get(name), is: is.get(name) }
    const isShown =
      before === null ? isChosen(name, change.is) : JSON.stringify(change.was) !== JSON.stringify(change.is)
    return isShown ? [change] : []
  })
}

/** What a change did to a record; of a new one, what it says. */
const Difference = ({ after, before }: { readonly before: unknown; readonly after: unknown }) => {
  const changes = differenceOf(before, after)
  if (changes.length === 0) return <span class="soft">nothing else</span>
  return (
    <dl class="difference">
      {changes.map(({ is, name, was }) => (
        <div key={name}>
          <dt class="soft">{name}</dt>
          <dd>
            {before !== null && (
              <>
                <del class="soft">
                  <Value name={name} value={was} />
                </del>
                {" → "}
              </>
            )}
            <Value name={name} value={is} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

type AuditRow = typeof AuditRowSchema.Encoded

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "actor", label: "Who", placeholder: "operator" },
  { kind: "text", name: "action", label: "What", placeholder: "keys or keys.revoke" },
  { kind: "text", name: "organization", label: "Organization", placeholder: "name or id" },
  { kind: "text", name: "target", label: "Target", placeholder: "id" },
  { kind: "range" }
]

const columns: ReadonlyArray<Column<AuditRow>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  {
    title: "Who",
    kind: "custom",
    value: ({ actor, via }) => (
      <>
        {actor} <Badge>{via}</Badge>
      </>
    )
  },
  { title: "What", kind: "text", value: ({ action }) => action },
  organizationColumn,
  {
    title: "Before and after",
    kind: "custom",
    value: ({ after, before }) => <Difference before={before} after={after} />
  },
  { title: "Target", kind: "code", value: ({ target }) => target }
]

export const Audit = () => (
  <ListPage
    title="Audit"
    label="Changes"
    path="/audit"
    filters={filters}
    empty="No change matches."
    columns={columns}
  />
)
