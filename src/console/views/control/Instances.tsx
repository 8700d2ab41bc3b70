import type { Instance as InstanceSchema } from "../../../services/control/Instances.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { formatMillis } from "../../format/Moment.ts"
import { Loaded } from "../../parts/Feedback.tsx"
import { Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { type Column, Table } from "../../parts/Table.tsx"

type Instance = typeof InstanceSchema.Encoded

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
    kind: "text",
    value: ({ host, pid }) => [host, pid].filter((part) => part !== null).join(", process ")
  },
  { title: "State", kind: "status", value: ({ state }) => ({ text: state, tone: tones[state] }) },
  { title: "Started", kind: "time", value: ({ started_at }) => started_at },
  {
    title: "Last heartbeat",
    kind: "text",
    value: ({ beat_age_seconds }) => `${formatMillis(beat_age_seconds * 1000)} ago`
  },
  { title: "Catalog", kind: "code", value: ({ fingerprint }) => fingerprint?.slice(0, 12) },
  { title: "Read", kind: "time", value: ({ read_at }) => read_at },
  { title: "Models", kind: "number", value: ({ models }) => models },
  { title: "Problem", kind: "custom", value: ({ problem }) => problem && <pre>{problem}</pre> },
  { title: "Id", kind: "code", value: ({ id }) => id }
]

export const InstanceTable = ({ rows }: { readonly rows: ReadonlyArray<Instance> }) => (
  <Table label="Instances" empty="No instance runs." rows={rows} columns={columns} />
)

/** Processes that run, or ended within a day. */
export const Instances = () => {
  const instances = useResource<Listed<typeof InstanceSchema>>("/instances", { everySeconds })
  return (
    <Section title="Instances">
      <Loaded resource={instances}>{({ data }) => <InstanceTable rows={data} />}</Loaded>
    </Section>
  )
}
