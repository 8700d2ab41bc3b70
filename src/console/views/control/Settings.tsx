import type { BlockedRange as BlockedRangeSchema } from "../../../services/access/BlockList.ts"
import type { InstanceRecord } from "../../../services/instance/RunningGateway.ts"
import { type Listed, usePages, useResource } from "../../api/useResource.ts"
import { formatMillis } from "../../format/Dates.ts"
import { WriteButton } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { TextField, textOf } from "../../parts/Fields.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, PagedTable, Table, useActions } from "../../parts/Table.tsx"
import { searchOf } from "../../Route.ts"
import { useHasRole } from "../../SignedIn.ts"
import { OperatorList } from "./OperatorList.tsx"

type Instance = typeof InstanceRecord.Encoded

const everySeconds = 5

const tones: Readonly<Record<Instance["state"], Tone>> = {
  running: "good",
  silent: "warn",
  stopped: "soft",
  dead: "bad"
}

const columns: ReadonlyArray<Column<Instance>> = [
  {
    title: "Host",
    kind: "custom",
    value: ({ host, id, pid }) => (
      <div>
        <bdi>{[host, pid].filter((part) => part !== null).join(", process ")}</bdi>
        <br />
        <small class="soft nowrap">
          <code>{id}</code>
        </small>
      </div>
    )
  },
  { title: "State", kind: "status", value: ({ state }) => ({ text: state, tone: tones[state] }) },
  { title: "Started", kind: "time", isLabelled: true, value: ({ started_at }) => started_at },
  {
    title: "Last heartbeat",
    kind: "text",
    isLabelled: true,
    value: ({ beat_age_seconds }) => `${formatMillis(beat_age_seconds * 1000)} ago`
  },
  { title: "Catalog version", kind: "code", isLabelled: true, value: ({ fingerprint }) => fingerprint?.slice(0, 12) },
  { title: "Catalog loaded", kind: "time", isLabelled: true, value: ({ read_at }) => read_at },
  { title: "Models", kind: "number", value: ({ models }) => models },
  { title: "Problem", kind: "custom", value: ({ problem }) => problem && <pre>{problem}</pre> }
]

export const InstanceTable = ({ rows }: { readonly rows: ReadonlyArray<Instance> }) => (
  <Table label="Instances" empty="No running instances." rows={rows} columns={columns} />
)

/** Lists instances that are running or stopped within the last day. */
const Instances = () => {
  const instances = useResource<Listed<typeof InstanceRecord>>("/instances", { everySeconds })
  return (
    <Section title="Instances">
      <Loaded resource={instances}>{({ data }) => <InstanceTable rows={data} />}</Loaded>
    </Section>
  )
}

type BlockedRange = typeof BlockedRangeSchema.Encoded

const BlockList = () => {
  const ranges = usePages<BlockedRange>("/blocklist")
  const columns = useActions<BlockedRange>(
    [
      { title: "Range", kind: "code", value: ({ cidr }) => cidr },
      { title: "Blocked since", kind: "time", value: ({ created_at }) => created_at }
    ],
    ({ cidr }) => (
      <WriteButton
        isPlain
        label="Unblock"
        target={cidr}
        title={`Unblock ${cidr}?`}
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
          title="Block an IP address or range"
          isDangerous
          path="/blocklist"
          body={(form) => ({ range: textOf(form, "range") })}
          onDone={ranges.refresh}
        >
          <TextField
            name="range"
            label="IP address or range"
            hint="Requests from these addresses are rejected, even with a valid API key."
            placeholder="203.0.113.0/24"
            required
          />
        </WriteButton>
      }
    >
      <PagedTable label="Block list" pages={ranges} empty="No blocked IP addresses." columns={columns} />
    </Section>
  )
}

export const Settings = () => (
  <Page title="Settings">
    {useHasRole("owner") && <OperatorList />}
    <Instances />
    <BlockList />
  </Page>
)
