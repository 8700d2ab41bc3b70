import type { InstanceRecord } from "../../../http/admin/instances/Schema.ts"
import { useResource } from "../../api/useResource.ts"
import { formatMillis } from "../../format/Moment.ts"
import type { Tone } from "../../parts/Badge.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"

type Instance = typeof InstanceRecord.Encoded

const everySeconds = 5

const tones: Readonly<Record<Instance["state"], Tone>> = {
  running: "good",
  silent: "warn",
  stopped: "soft",
  dead: "bad"
}

/** Processes that run, or ended within a day. */
export const Instances = () => {
  const instances = useResource<{ readonly data: ReadonlyArray<Instance> }>("/instances", { everySeconds })
  return (
    <Section title="Instances">
      <Loaded resource={instances}>
        {({ data }) => (
          <Table
            label="Instances"
            rows={data}
            rowKey={({ id }) => id}
            columns={[
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
              { title: "Models", kind: "number", value: ({ models }) => models },
              { title: "Problem", kind: "text", value: ({ problem }) => problem },
              { title: "Id", kind: "code", value: ({ id }) => id }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
