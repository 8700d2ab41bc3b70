import type { Bug } from "./Bug.ts"

const file = "migrations/0030_uncounted_requests.sql"
const counting = "test/services/telemetry/UsageCounting.test.ts"
const model = "test/model/UsageModel.long.test.ts"

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
  },
  {
    name: "a customer is charged what the provider states",
    file: "src/services/chat/ChatCharging.ts",
    find: "const cost = Pricing.chatCharge(model.pricing, billed)",
    replace: "const cost = record.statedCost ?? Pricing.chatCharge(model.pricing, billed)",
    caughtBy: ["test/http/chat/StatedCosts.test.ts"]
  },
  {
    name: "an absurd stated cost is kept",
    file: "src/providers/client/StatedCost.ts",
    find: "!(value >= 0) || value > mostUsd * 10 ** digits",
    replace: "Number.isNaN(value)",
    caughtBy: ["test/providers/client/StatedCost.test.ts", "test/http/chat/StatedCosts.test.ts"]
  },
  {
    name: "costs are compared with those of requests whose provider states none",
    file: "migrations/0039_counts_of_media.sql",
    find: "CASE WHEN r.stated_cost IS NULL OR r.cost IS NULL THEN 0",
    replace: "CASE WHEN r.cost IS NULL THEN 0",
    caughtBy: ["test/http/admin/Attention.test.ts"]
  }
]
