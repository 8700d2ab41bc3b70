import type { BlockedRange as BlockedRangeSchema } from "../../../services/access/BlockList.ts"
import { usePages } from "../../api/usePages.ts"
import { useActions } from "../../parts/columns.tsx"
import { TextField, textOf } from "../../parts/Field.tsx"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { searchOf } from "../../Route.ts"

type BlockedRange = typeof BlockedRangeSchema.Encoded

export const BlockList = () => {
  const ranges = usePages<BlockedRange>("/blocklist")
  const columns = useActions<BlockedRange>(
    [
      { title: "Range", kind: "code", value: ({ cidr }) => cidr },
      { title: "Since", kind: "time", value: ({ created_at }) => created_at }
    ],
    ({ cidr }) => (
      <WriteButton
        isPlain
        label="Let in"
        of={cidr}
        title={`Let ${cidr} in again?`}
        method="DELETE"
        path={`/blocklist${searchOf({ range: cidr })}`}
        onDone={ranges.refresh}
      />
    )
  )
  return (
    <Section
      title="Block list"
      actions={
        <WriteButton<BlockedRange>
          label="Block"
          title="Block an address or a range"
          isDangerous
          path="/blocklist"
          body={(form) => ({ range: textOf(form, "range") })}
          onDone={ranges.refresh}
        >
          <TextField
            name="range"
            label="Address or range"
            hint="Its requests are refused before anything else, whatever their key."
            placeholder="203.0.113.0/24"
            required
          />
        </WriteButton>
      }
    >
      <PagedTable
        label="Block list"
        pages={ranges}
        empty="Nothing is blocked."
        rowKey={({ id }) => id}
        columns={columns}
      />
    </Section>
  )
}
