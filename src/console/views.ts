import type { ComponentType } from "preact"
import { useMembership, usePaymentLimits } from "./Session.ts"
import { Audit } from "./views/audit/Audit.tsx"
import { Settings } from "./views/control/Settings.tsx"
import { Holds } from "./views/holds/Holds.tsx"
import { Ledger } from "./views/ledger/Ledger.tsx"
import { Now } from "./views/now/Now.tsx"
import { OrganizationPage } from "./views/organizations/Organization.tsx"
import { Organizations } from "./views/organizations/Organizations.tsx"
import { Overview, OwnKeys, OwnStatement } from "./views/overview/Overview.tsx"
import { PaymentPage, Payments } from "./views/payments/Payments.tsx"
import { Request } from "./views/requests/Request.tsx"
import { Requests } from "./views/requests/Requests.tsx"
import { Routes } from "./views/routes/Routes.tsx"
import { Statement, Statements } from "./views/statements/Statement.tsx"
import { Usage } from "./views/usage/Usage.tsx"
import { Video, Videos } from "./views/videos/Videos.tsx"
import { Webhooks } from "./views/webhooks/Webhooks.tsx"

interface View {
  /** The first part of the hash's path. */
  readonly path: string
  readonly title: string
  /** Pressed after `g`. */
  readonly key: string
  readonly view: ComponentType
  /** Shows one of them, where the path has a second part. */
  readonly detail?: ComponentType<{ readonly id: string }>
}

const requests: View = { path: "requests", title: "Requests", key: "r", view: Requests, detail: Request }
const usage: View = { path: "usage", title: "Usage", key: "u", view: Usage }
const videos: View = { path: "videos", title: "Videos", key: "v", view: Videos, detail: Video }
const webhooks: View = { path: "webhooks", title: "Webhooks", key: "w", view: Webhooks }
const payments: View = { path: "payments", title: "Payments", key: "p", view: Payments, detail: PaymentPage }

/** In the order of the navigation, as below. */
const operatorViews: ReadonlyArray<View> = [
  { path: "", title: "Now", key: "n", view: Now },
  requests,
  usage,
  { path: "organizations", title: "Organizations", key: "o", view: Organizations, detail: OrganizationPage },
  { path: "ledger", title: "Ledger", key: "l", view: Ledger },
  { path: "statements", title: "Statements", key: "m", view: Statements, detail: Statement },
  payments,
  { path: "holds", title: "Open holds", key: "h", view: Holds },
  videos,
  { path: "routes", title: "Routes", key: "t", view: Routes },
  webhooks,
  { path: "audit", title: "Audit", key: "a", view: Audit },
  { path: "settings", title: "Settings", key: "s", view: Settings }
]

const memberViews: ReadonlyArray<View> = [
  { path: "", title: "Overview", key: "o", view: Overview },
  requests,
  usage,
  { path: "keys", title: "Keys", key: "k", view: OwnKeys },
  videos,
  webhooks,
  { path: "statements", title: "Statements", key: "m", view: OwnStatement },
  { ...payments, title: "Add credits" }
]

const withPayments = { operatorViews, memberViews }

const withoutPayments = {
  operatorViews: operatorViews.filter(({ path }) => path !== payments.path),
  memberViews: memberViews.filter(({ path }) => path !== payments.path)
}

/** Those of who has signed in: there are no others. */
export const useViews = (): ReadonlyArray<View> => {
  const all = usePaymentLimits() === null ? withoutPayments : withPayments
  return useMembership() === undefined ? all.operatorViews : all.memberViews
}
