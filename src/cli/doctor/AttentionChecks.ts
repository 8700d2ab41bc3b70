import { Effect } from "effect"
import { Now } from "../../services/admin/now/Now.ts"
import type { Attention, AttentionKind } from "../../services/admin/now/Record.ts"
import { type Finding, list, ok, problem, warning } from "./Finding.ts"

interface Check {
  readonly judge: (check: string, detail: string) => Finding
  readonly kinds: ReadonlyArray<AttentionKind>
  readonly fine: string
  /** What shows more. */
  readonly see: string
}

/** A customer who runs low is no fault of the gateway's. */
const checks: Readonly<Record<string, Check>> = {
  models: { judge: problem, kinds: ["model_down"], fine: "none is down", see: "gateway providers" },
  routes: {
    judge: warning,
    kinds: ["circuit", "route_disabled"],
    fine: "none is disabled, no circuit is open",
    see: "gateway providers"
  },
  instances: {
    judge: warning,
    kinds: ["catalog_problem"],
    fine: "all serve one catalog",
    see: "gateway catalog reload"
  },
  margins: {
    judge: warning,
    kinds: ["sold_below_cost", "cost_unknown"],
    fine: "nothing was sold below cost, or at an unknown one, within a day",
    see: "gateway usage --by model,route --since 1d"
  },
  costs: {
    judge: warning,
    kinds: ["cost_drift"],
    fine: "none differs from what providers stated within a day",
    see: "gateway usage --by route --since 1d --json"
  },
  videos: { judge: warning, kinds: ["stuck_video"], fine: "none is late", see: "gateway videos list" },
  payments: {
    judge: warning,
    kinds: ["payment_refused", "payment_disputed", "payment_reversal_amount"],
    fine: "all are credited, none is disputed, and no refund waits for its amount",
    see: "gateway payments list"
  },
  holds: { judge: warning, kinds: ["old_hold"], fine: "none is old", see: "gateway holds" },
  webhooks: {
    judge: warning,
    kinds: ["webhook_failing", "webhook_failed"],
    fine: "all are taken",
    see: "gateway webhooks list"
  }
}

const findingsOf = (attention: ReadonlyArray<Attention>): ReadonlyArray<Finding> =>
  Object.entries(checks).map(([check, { fine, judge, kinds, see }]) => {
    const found = attention.filter(({ kind }) => kinds.includes(kind))
    if (found.length === 0) return ok(check, fine)
    const said = list(found.map(({ detail, title }) => `${title} (${detail.replace(/\.$/, "")})`))
    return judge(check, `${said}. ${see} shows more`)
  })

/** What the console says that needs an operator. */
export const checkAttention = Effect.map(
  Effect.flatMap(Now, ({ read }) => read),
  ({ attention }) => findingsOf(attention)
)
