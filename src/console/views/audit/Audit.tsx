import { Fragment } from "preact"
import type { AuditRow as AuditRowSchema } from "../../../services/admin/AuditLog.ts"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/Page.tsx"
import { type Column, organizationColumn } from "../../parts/Table.tsx"
import { Badge, Long, Time, Usd } from "../../parts/Values.tsx"

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** Formats a value by the name of its field. Lists of records have one record per line. */
const Value = ({ name, value }: { readonly name: string; readonly value: unknown }) => {
  if (value === null || value === undefined) return <span class="soft">none</span>
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>
  if (typeof value === "number") {
    if (name.endsWith("_usd")) return <Usd amount={value} />
    return name === "at" || name.endsWith("_at") ? <Time at={value} /> : <>{value}</>
  }
  if (typeof value === "string") return value === "" ? <span class="soft">empty</span> : <Long text={value} />
  if (!isObject(value)) return <>{JSON.stringify(value)}</>
  if (!Array.isArray(value)) return <Fields record={value} />
  if (value.length === 0) return <span class="soft">none</span>
  if (!value.some(isObject)) return <Long text={value.join(", ")} />
  return (
    <ol>
      {value.map((item: unknown, index) => (
        <li key={index}>
          <Value name={name} value={item} />
        </li>
      ))}
    </ol>
  )
}

/** The names and values of a nested record that are set, in one paragraph. */
const Fields = ({ record }: { readonly record: object }) => (
  <>
    {Object.entries(record)
      .filter(([, value]) => value !== null)
      .map(([name, value], index) => (
        <Fragment key={name}>
          {index > 0 && ", "}
          <span class="soft">{name}</span> <Value name={name} value={value} />
        </Fragment>
      ))}
  </>
)

interface Change {
  readonly name: string
  readonly before: unknown
  readonly after: unknown
}

const fieldsOf = (record: unknown): ReadonlyMap<string, unknown> =>
  new Map(isObject(record) ? Object.entries(record) : [])

/** Fields that have their own column, or whose value the gateway assigns. */
const omittedFields = new Set(["id", "org", "org_name", "at", "created_at"])

const isChosen = (name: string, value: unknown) =>
  !omittedFields.has(name) && value !== null && value !== false && value !== 0

/** Returns the changed fields, or the fields of a new record that have a value. */
const differenceOf = (before: unknown, after: unknown): ReadonlyArray<Change> => {
  const oldFields = fieldsOf(before)
  const newFields = fieldsOf(after)
  return [...new Set([...oldFields.keys(), ...newFields.keys()])].flatMap((name) => {
    const change = { name, before: oldFields.get(name), after: newFields.get(name) }
    const isRelevant =
      before === null ? isChosen(name, change.after) : JSON.stringify(change.before) !== JSON.stringify(change.after)
    return isRelevant ? [change] : []
  })
}

/** The changed fields with old and new values, or the values of a new record. */
const Difference = ({ after, before }: { readonly before: unknown; readonly after: unknown }) => {
  const changes = differenceOf(before, after)
  if (changes.length === 0) return <span class="soft">No field changes</span>
  return (
    <dl class="difference">
      {changes.map(({ after: newValue, before: oldValue, name }) => (
        <div key={name}>
          <dt class="soft">{name}</dt>
          <dd>
            {before !== null && (
              <>
                <del class="soft">
                  <Value name={name} value={oldValue} />
                </del>
                {" → "}
              </>
            )}
            <Value name={name} value={newValue} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

type AuditRow = typeof AuditRowSchema.Encoded

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "actor", label: "Actor", placeholder: "Operator" },
  { kind: "text", name: "action", label: "Action", placeholder: "e.g. keys or keys.revoke" },
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID" },
  { kind: "text", name: "target", label: "Target", placeholder: "ID" },
  { kind: "range" }
]

const columns: ReadonlyArray<Column<AuditRow>> = [
  { title: "Time", kind: "time", value: ({ at }) => at },
  {
    title: "Actor",
    kind: "custom",
    value: ({ actor, via }) => (
      <>
        {actor} <Badge>{via}</Badge>
      </>
    )
  },
  { title: "Action", kind: "text", narrow: "main", value: ({ action }) => action },
  organizationColumn,
  {
    title: "Changes",
    kind: "custom",
    value: ({ after, before }) => <Difference before={before} after={after} />
  },
  { title: "Target", kind: "code", value: ({ target }) => target }
]

export const Audit = () => (
  <ListPage title="Audit log" label="Changes" path="/audit" filters={filters} nouns="changes" columns={columns} />
)
