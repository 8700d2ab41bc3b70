import { useResource } from "../../api/useResource.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import type { InstanceRecord } from "./RouteRecord.ts"

interface Answered {
  readonly data: ReadonlyArray<{ readonly state: string }>
}

const say = ({ data }: Answered) => {
  const count = data.filter(({ state }) => state === "reloaded").length
  toast(
    count === data.length
      ? "Every instance has read its catalog again."
      : `${data.length - count} of ${data.length} instances go on with the catalog they had.`
  )
}

/** Which catalog each instance serves; unequal fingerprints are of unequal catalogs. */
export const Instances = ({ onReload }: { readonly onReload: () => void }) => {
  const instances = useResource<{ readonly data: ReadonlyArray<InstanceRecord> }>("/instances", { everySeconds: 10 })
  const running = instances.data?.data.filter(({ state }) => state === "running") ?? []
  const isUneven = new Set(running.flatMap(({ fingerprint }) => fingerprint ?? [])).size > 1
  return (
    <Section
      title="Instances"
      actions={
        <WriteButton<Answered>
          label="Reload the catalog"
          title="Reload the catalog?"
          action="Reload"
          method="POST"
          path="/catalog/reload"
          onDone={(answer) => {
            say(answer)
            instances.refresh()
            onReload()
          }}
        >
          <p>
            Every instance reads its catalog and its credentials again. One that refuses them goes on with what it had,
            and says why.
          </p>
        </WriteButton>
      }
    >
      {isUneven && <p class="error-box">The instances serve different catalogs.</p>}
      <Loaded resource={instances}>
        {() => (
          <Table
            label="Instances"
            empty="No instance runs."
            rows={running}
            rowKey={({ id }) => id}
            columns={[
              { title: "Host", kind: "text", value: ({ host, pid }) => (pid === null ? host : `${host}, pid ${pid}`) },
              { title: "Instance", kind: "code", value: ({ id }) => id },
              { title: "Catalog", kind: "code", value: ({ fingerprint }) => fingerprint },
              { title: "Models", kind: "number", value: ({ models }) => models },
              { title: "Read", kind: "time", value: ({ read_at }) => read_at },
              {
                title: "Problem",
                kind: "custom",
                value: ({ problem }) => (problem === null ? <Badge tone="good">none</Badge> : <pre>{problem}</pre>)
              }
            ]}
          />
        )}
      </Loaded>
    </Section>
  )
}
