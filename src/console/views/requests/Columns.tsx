import { formatMillis } from "../../format/Moment.ts"
import { shorten } from "../../format/Short.ts"
import { addUsd } from "../../format/Subtraction.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Charge } from "../../parts/Charge.tsx"
import { keyColumn, organizationColumn, timeColumn } from "../../parts/columns.tsx"
import type { Column } from "../../parts/Table.tsx"
import { statusOf } from "./Outcome.ts"
import type { RequestRecord } from "./RequestRecord.ts"

const maxShown = 80

/** Without the model's name, which most routes begin with. */
const shortRoute = (route: string, model: string | null): string =>
  model !== null && route.startsWith(`${model}@`) ? route.slice(model.length + 1) : route

const Route = ({ row: { attempts, model, route } }: { readonly row: RequestRecord }) => {
  const failed = attempts.filter(({ outcome }) => outcome !== "ok").length
  if (route === null && failed === 0) return <span class="soft">–</span>
  return (
    <span class="route">
      {route !== null && <code>{shortRoute(route, model)}</code>}{" "}
      {failed > 0 && <Badge tone="warn">{failed === 1 ? "1 failed" : `${failed} failed`}</Badge>}
    </span>
  )
}

export const columns: ReadonlyArray<Column<RequestRecord>> = [
  timeColumn("requests", ({ at }) => at),
  {
    title: "Status",
    kind: "status",
    share: 30,
    value: ({ code, status }) => statusOf(status, code),
    hint: ({ code, error, status }) => error?.message ?? statusOf(status, code).text
  },
  { ...organizationColumn, share: 17 },
  { title: "Model", kind: "code", share: 19, value: ({ model }) => model && shorten(model, maxShown) },
  {
    title: "Route",
    kind: "custom",
    isInternal: true,
    share: 23,
    value: (row) => <Route row={row} />,
    hint: ({ route }) => route
  },
  {
    title: "Charge",
    kind: "custom",
    isAmount: true,
    value: ({ charge_usd, refunded_usd }) => (
      <Charge charged={addUsd(charge_usd, refunded_usd)} refunded={refunded_usd} />
    )
  },
  { title: "Took", kind: "amount", value: ({ total_ms }) => formatMillis(total_ms) },
  { title: "Tokens", kind: "number", value: ({ usage }) => usage?.total_tokens },
  { ...keyColumn, share: 11 }
]
