import type { DashboardRecord } from "../../src/services/admin/DashboardRecord.ts"
import type { Answers } from "./ConsolePage.ts"

type DashboardData = typeof DashboardRecord.Encoded

export const at = 1_795_390_000

const none: DashboardData["today"] = {
  requests: 0,
  errors: 0,
  refusals: 0,
  charge_usd: 0,
  cost_usd: 0,
  margin_usd: 0,
  cost_unknown: 0,
  first_byte_p50_ms: null,
  first_byte_p95_ms: null
}

export const quiet: DashboardData = {
  at,
  today: none,
  yesterday: none,
  hours: Array.from({ length: 48 }, (_, index) => ({
    hour: at - (at % 3600) - (47 - index) * 3600,
    requests: 0,
    errors: 0,
    refusals: 0,
    charge_usd: 0
  })),
  holds: { open: 0, amount_usd: 0, oldest: null },
  circuits: [],
  attention: []
}

/** A hostile text, as customers and providers could write it. */
export const hostile = '<img src=x onerror="document.title=1">\u202Egnp.exe'

export const busy: DashboardData = {
  ...quiet,
  today: {
    requests: 14_382,
    errors: 61,
    refusals: 212,
    charge_usd: 183.204817005,
    cost_usd: 131.5500203,
    margin_usd: -0.000000001,
    cost_unknown: 3,
    first_byte_p50_ms: 412.4,
    first_byte_p95_ms: 1840
  },
  yesterday: {
    ...none,
    requests: 7191,
    errors: 30,
    charge_usd: 183.204817004,
    margin_usd: null,
    cost_unknown: 7191,
    first_byte_p50_ms: 400
  },
  hours: quiet.hours.map((hour, index) => ({
    ...hour,
    requests: 100 + index,
    errors: index % 5,
    charge_usd: index * 0.000000001
  })),
  holds: {
    open: 17,
    amount_usd: 3.204000001,
    oldest: { id: "hold_1", org: "org_1", org_name: hostile, amount_usd: 0.25, created_at: at - 7321 }
  },
  circuits: [
    {
      route: `fal/${"very-long-name-".repeat(8)}@eu`,
      state: "open",
      until: at + 30,
      last_error: hostile,
      last_error_at: at - 5,
      note: null
    },
    { route: "openrouter@main", state: "disabled", until: null, last_error: null, last_error_at: null, note: "paused" }
  ],
  attention: [
    {
      kind: "low_balance",
      title: `${hostile} has 2.1 days left`,
      detail: `$4.20 available ${"x".repeat(300)}`,
      org: "org_1",
      org_name: hostile,
      href: "#/organizations/org_1"
    },
    { kind: "catalog_problem", title: "gw-2 rejected the catalog", detail: "unknown provider", href: "#/settings" }
  ]
}

export const dashboardAnswers = (answer: DashboardData = quiet): Answers => ({ "/now": () => ({ body: answer }) })
