import type { Bug } from "./Bug.ts"

const file = "migrations/0030_uncounted_requests.sql"
const counting = "test/services/telemetry/UsageCounting.test.ts"
const model = "test/model/UsageModel.test.ts"

/** Bugs in what requests come to in reports. */
export const usageBugs: ReadonlyArray<Bug> = [
  {
    name: "a change of an uncounted request is counted twice",
    file,
    find: " AND (r).id <> ALL (queued)",
    replace: "",
    caughtBy: [model, counting]
  },
  {
    name: "a change does not wait for a running count",
    file,
    find: "  PERFORM pg_advisory_xact_lock_shared(7025102615);\n",
    replace: "",
    caughtBy: [model, counting]
  },
  {
    name: "an uncounted request of before the totals is counted by both who add",
    file,
    find: " AND r.id NOT IN (SELECT id FROM uncounted_requests)",
    replace: "",
    caughtBy: [model, counting]
  },
  {
    name: "a report counts uncounted requests of broken hours twice",
    file: "src/services/telemetry/UsageSql.ts",
    find: "[...days, ...hours])",
    replace: "[...days, ...hours, ...rows])",
    caughtBy: [model, counting]
  }
]
