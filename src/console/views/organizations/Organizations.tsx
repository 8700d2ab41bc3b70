import { useRoute } from "../../CurrentRoute.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { TextField, textOf, UsdField } from "../../parts/Field.tsx"
import type { Filter } from "../../parts/FilterBar.tsx"
import { ListPage } from "../../parts/ListPage.tsx"
import type { Status } from "../../parts/Status.ts"
import type { Column } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import type { Organization } from "./records.ts"

export const stateOf = ({ cap_spent_usd, cap_usd, deleted_at, suspended }: Organization): Status => {
  if (deleted_at !== undefined) return { text: "deleted", tone: "soft" }
  if (suspended) return { text: "suspended", tone: "warn" }
  return cap_usd !== null && cap_spent_usd !== null && cap_spent_usd >= cap_usd
    ? { text: "cap reached", tone: "warn" }
    : { text: "active", tone: "good" }
}

const Create = () => (
  <WriteButton<Organization>
    label="Create organization"
    title="Create an organization"
    action="Create"
    path="/organizations"
    body={(form) => ({ name: textOf(form, "name"), credits_usd: textOf(form, "credits_usd") })}
    onDone={({ id }) => {
      location.hash = link(["organizations", id])
    }}
  >
    <TextField name="name" label="Name" hint="No other organization has it." required />
    <UsdField name="credits_usd" label="Credits to begin with, in USD" hint="None, if left empty." />
  </WriteButton>
)

const filters: ReadonlyArray<Filter> = [
  { kind: "text", name: "search", label: "Search", placeholder: "name or id" },
  { kind: "select", name: "state", label: "State", options: ["active", "suspended", "deleted"] }
]

const columns: ReadonlyArray<Column<Organization>> = [
  { title: "Name", kind: "link", value: ({ id, name }) => ({ href: link(["organizations", id]), text: name }) },
  { title: "State", kind: "status", value: stateOf },
  { title: "Available", kind: "usd", value: ({ available_usd }) => available_usd },
  { title: "Held", kind: "usd", value: ({ held_usd }) => held_usd },
  { title: "Balance", kind: "usd", value: ({ balance_usd }) => balance_usd },
  { title: "Created", kind: "time", value: ({ created_at }) => created_at },
  { title: "Id", kind: "code", value: ({ id }) => id }
]

export const Organizations = () => {
  const { search, state } = useRoute().query
  return (
    <ListPage
      title="Organizations"
      actions={<Create />}
      path="/organizations"
      filters={filters}
      empty={search || state ? "None matches." : "There are no organizations yet."}
      columns={columns}
    />
  )
}
