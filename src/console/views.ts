import type { ComponentType } from "preact"
import { useMembership, usePaymentLimits } from "./SignedIn.ts"
import { Audit } from "./views/audit/Audit.tsx"
import { OwnMembers } from "./views/control/OperatorList.tsx"
import { Settings } from "./views/control/Settings.tsx"
import { Dashboard } from "./views/dashboard/Dashboard.tsx"
import { Holds, Ledger } from "./views/ledger/Ledger.tsx"
import { ModelPage, OwnModel } from "./views/models/ModelPage.tsx"
import { Models, OwnModels } from "./views/models/Models.tsx"
import { OrganizationPage, Organizations } from "./views/organizations/Organization.tsx"
import { Overview, OwnKeys, OwnStatement } from "./views/overview/Overview.tsx"
import { PaymentPage, Payments } from "./views/payments/Payments.tsx"
import { Playground } from "./views/playground/Playground.tsx"
import { Request } from "./views/requests/Request.tsx"
import { Requests } from "./views/requests/Requests.tsx"
import { Statement, Statements } from "./views/statements/Statement.tsx"
import { Usage } from "./views/usage/Usage.tsx"
import { Video, Videos } from "./views/videos/Videos.tsx"
import { Webhooks } from "./views/webhooks/Webhooks.tsx"

/** The headings of the navigation. The views of `main` come first and have no heading. */
type Group = "main" | "Traffic" | "Customers" | "Gateway" | "Organization" | "Billing"

interface View {
  /** The first part of the hash's path. */
  readonly path: string
  readonly title: string
  readonly group: Group
  /** The key to press after `g`. */
  readonly key: string
  readonly view: ComponentType
  /** Shows one record, whose id is the second part of the path. */
  readonly detail?: ComponentType<{ readonly id: string }>
}

const requests: View = {
  path: "requests",
  title: "Requests",
  group: "Traffic",
  key: "r",
  view: Requests,
  detail: Request
}
const usage: View = { path: "usage", title: "Usage", group: "Traffic", key: "u", view: Usage }
const videos: View = { path: "videos", title: "Videos", group: "Traffic", key: "v", view: Videos, detail: Video }
const webhooks: View = { path: "webhooks", title: "Webhooks", group: "Traffic", key: "w", view: Webhooks }
const payments: View = {
  path: "payments",
  title: "Payments",
  group: "Customers",
  key: "p",
  view: Payments,
  detail: PaymentPage
}

const playground: View = { path: "playground", title: "Playground", group: "main", key: "y", view: Playground }

/** In the order of the navigation. */
const operatorViews: ReadonlyArray<View> = [
  { path: "", title: "Dashboard", group: "main", key: "n", view: Dashboard },
  { path: "models", title: "Models", group: "main", key: "d", view: Models, detail: ModelPage },
  playground,
  requests,
  usage,
  videos,
  webhooks,
  {
    path: "organizations",
    title: "Organizations",
    group: "Customers",
    key: "o",
    view: Organizations,
    detail: OrganizationPage
  },
  payments,
  { path: "statements", title: "Statements", group: "Customers", key: "m", view: Statements, detail: Statement },
  { path: "ledger", title: "Ledger", group: "Customers", key: "l", view: Ledger },
  { path: "holds", title: "Open holds", group: "Customers", key: "h", view: Holds },
  { path: "audit", title: "Audit log", group: "Gateway", key: "a", view: Audit },
  { path: "settings", title: "Settings", group: "Gateway", key: "s", view: Settings }
]

const memberViews: ReadonlyArray<View> = [
  { path: "", title: "Overview", group: "main", key: "o", view: Overview },
  { path: "models", title: "Models", group: "main", key: "d", view: OwnModels, detail: OwnModel },
  playground,
  requests,
  usage,
  videos,
  { path: "keys", title: "Keys", group: "Organization", key: "k", view: OwnKeys },
  { ...webhooks, group: "Organization" },
  { path: "members", title: "Members", group: "Organization", key: "e", view: OwnMembers },
  { ...payments, title: "Add credits", group: "Billing" },
  { path: "statements", title: "Statements", group: "Billing", key: "m", view: OwnStatement }
]

const withPayments = { operatorViews, memberViews }

const withoutPayments = {
  operatorViews: operatorViews.filter(({ path }) => path !== payments.path),
  memberViews: memberViews.filter(({ path }) => path !== payments.path)
}

/** Returns the views of the signed-in operator or member. */
export const useViews = (): ReadonlyArray<View> => {
  const all = usePaymentLimits() === null ? withoutPayments : withPayments
  return useMembership() === undefined ? all.operatorViews : all.memberViews
}
