import { nounFor } from "../../../domain/Plural.ts"
import type { ReloadAnswer } from "../../../http/admin/Catalog.ts"
import type { Instance as InstanceSchema } from "../../../services/control/Instances.ts"
import { type Listed, useResource } from "../../api/useResource.ts"
import { formatCounted } from "../../format/Amount.ts"
import { Loaded } from "../../parts/Loaded.tsx"
import { Section } from "../../parts/Page.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { WriteButton } from "../../parts/WriteButton.tsx"
import { InstanceTable } from "../control/Instances.tsx"

type Answered = typeof ReloadAnswer.Encoded

const say = ({ data }: Answered) => {
  const failed = data.filter(({ state }) => state !== "reloaded").length
  toast(
    failed === 0
      ? "Every instance has read its catalog again."
      : `${failed} of ${formatCounted(data.length, "instance")} ${nounFor(failed, "keeps its", "keep their")} previous catalog.`
  )
}

/** Which catalog each instance serves; unequal fingerprints are of unequal catalogs. */
export const Instances = ({ onReload }: { readonly onReload: () => void }) => {
  const instances = useResource<Listed<typeof InstanceSchema>>("/instances", { everySeconds: 10 })
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
      <Loaded resource={instances}>{() => <InstanceTable rows={running} />}</Loaded>
    </Section>
  )
}
