import type { Duration, Effect } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { NoAnswer, NotAsked } from "./DatabaseRetry.ts"
import { isLockTimeout, isOutage } from "./Outage.ts"

const late = (mayHaveRun: boolean) => (mayHaveRun ? new NoAnswer() : new NotAsked())

/** Whether a failure is another than having waited for too long. */
export const inTime = ({ _tag }: { readonly _tag: string }): boolean => _tag !== "NoAnswer" && _tag !== "NotAsked"

/** An organization that somebody has locked goes on by itself, beside the others. */
export const byOrganization = (permits: Effect.Semaphore) => ({
  laneOf: ({ org }: { readonly org: OrgId }) => org,
  isBlocked: isLockTimeout,
  permits
})

/** What the batches of the ledger have in common; an item waits for so long. */
export const options = (duration: Duration.DurationInput, lanes: ReturnType<typeof byOrganization>) => ({
  maxSize: 256,
  patience: { duration, late },
  isShared: isOutage,
  lanes
})
