import { Option } from "effect"
import type { DatabaseTotals } from "../../services/telemetry/DatabaseTotals.ts"
import { type Families, gauge } from "./Prometheus.ts"

interface Open {
  readonly count: number
  readonly oldestMs: number
}

const none: Open = { count: 0, oldestMs: 0 }

const openFamilies = (
  [name, what]: readonly [name: string, what: string],
  ageName: string,
  label: string,
  open: Readonly<Record<string, Open>>
): Families => [
  gauge(
    name,
    `${what} of the database`,
    Object.entries(open).map(([value, { count }]) => [[[label, value]], count])
  ),
  gauge(
    ageName,
    `Age of the oldest of these`,
    Object.entries(open).map(([value, { oldestMs }]) => [[[label, value]], oldestMs / 1000])
  )
]

const families = ({ holds, organizations, videos, webhooks }: DatabaseTotals): Families => [
  ...openFamilies(["gateway_holds", "Open holds"], "gateway_oldest_hold_seconds", "owner", {
    process: holds.find(({ owner }) => owner === "process") ?? none,
    job: holds.find(({ owner }) => owner === "job") ?? none
  }),
  ...openFamilies(["gateway_videos", "Unfinished videos"], "gateway_oldest_video_seconds", "status", {
    queued: videos.find(({ status }) => status === "queued") ?? none,
    in_progress: videos.find(({ status }) => status === "in_progress") ?? none
  }),
  gauge(
    "gateway_webhooks_failing",
    "Deliveries of the database that have failed and are to be tried again",
    webhooks.map(({ count }) => [[], count])
  ),
  gauge(
    "gateway_oldest_failing_webhook_seconds",
    "Age of the oldest of these",
    webhooks.map(({ oldestMs }) => [[], oldestMs / 1000])
  ),
  gauge(
    "gateway_organizations_low",
    "Organizations of the database that have no more than that available",
    organizations.map(({ count, usd }) => [[["usd", String(usd)]], count])
  )
]

/** What the process that answers says alone: of itself, and of the database. */
export const ownFamilies = (unready: string | undefined, totals: Option.Option<DatabaseTotals>): Families => [
  gauge("gateway_ready", "1 while /readyz answers 200", [[[], unready === undefined ? 1 : 0]]),
  ...Option.match(totals, { onNone: () => [], onSome: families })
]
