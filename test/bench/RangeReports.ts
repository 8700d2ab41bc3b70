import { Effect } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Usage } from "../../src/services/telemetry/Usage.ts"
import type { Command } from "./Commands.ts"
import { busiest } from "./GrownDatabase.ts"

const hour = 3_600_000

/** What the database is asked over a range of the log, which is more work the longer the range is. */
export const reports = Effect.gen(function* () {
  const usage = yield* Usage
  const now = Date.now()
  const of = (name: string, query: Omit<Parameters<typeof usage.report>[1], "by">): Command => ({
    name: `usage${name}`,
    run: usage.report(OrganizationScope.all, { by: "model", ...query }),
    mostRows: Infinity
  })
  return [
    of(" --since 1d", { since: now - 24 * hour }),
    of(" --since 7d", { since: now - 7 * 24 * hour }),
    of(" --since 30d", { since: now - 30 * 24 * hour }),
    of(" --org --since 7d", { org: busiest, since: now - 7 * 24 * hour }),
    of(" --org --since 30d", { org: busiest, since: now - 30 * 24 * hour }),
    of(" --org", { org: busiest }),
    of("", {})
  ]
})
