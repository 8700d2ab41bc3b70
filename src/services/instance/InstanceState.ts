import { Duration, Schema } from "effect"
import type { TimingValues } from "../runtime/Timings.ts"

export const InstanceState = Schema.Literal("running", "silent", "stopped", "dead")

const age = (instance: string) => `extract(epoch FROM now() - ${instance}.beat_at)::float8`

/** SQL of the seconds since a row of `instances` had its last heartbeat. */
export const beatAgeOf = (instance: string): string => `round((${age(instance)})::numeric, 1)::float8`

/** SQL: whether the instance of a row of `instances` runs, and had a heartbeat within the time. */
export const isAlive = (instance: string, within: Duration.Duration): string =>
  `${instance}.stopped_at IS NULL AND ${instance}.swept_at IS NULL
    AND ${instance}.beat_at > now() - ${Duration.toSeconds(within)} * interval '1 second'`

/** SQL of an `InstanceState`, of a row of `instances`. */
export const stateOf = (
  instance: string,
  { deadAfter, silentAfter }: Pick<TimingValues, "deadAfter" | "silentAfter">
): string => `CASE
  WHEN ${instance}.stopped_at IS NOT NULL THEN 'stopped'
  WHEN ${instance}.swept_at IS NOT NULL OR ${age(instance)} > ${Duration.toSeconds(deadAfter)} THEN 'dead'
  WHEN ${age(instance)} > ${Duration.toSeconds(silentAfter)} THEN 'silent'
  ELSE 'running'
END`
