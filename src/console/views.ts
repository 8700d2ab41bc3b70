import type { ComponentType } from "preact"
import { Audit } from "./views/audit/Audit.tsx"
import { Settings } from "./views/control/SettingsView.tsx"
import { Holds } from "./views/holds/Holds.tsx"
import { Ledger } from "./views/ledger/Ledger.tsx"
import { Now } from "./views/now/Now.tsx"
import { Organization } from "./views/organizations/Organization.tsx"
import { Organizations } from "./views/organizations/Organizations.tsx"
import { Request } from "./views/requests/Request.tsx"
import { Requests } from "./views/requests/Requests.tsx"
import { Routes } from "./views/routes/Routes.tsx"
import { Statement } from "./views/statements/Statement.tsx"
import { Statements } from "./views/statements/Statements.tsx"
import { Usage } from "./views/usage/Usage.tsx"
import { Video } from "./views/videos/Video.tsx"
import { Videos } from "./views/videos/Videos.tsx"
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

/** In the order of the navigation. */
export const views: ReadonlyArray<View> = [
  { path: "", title: "Now", key: "n", view: Now },
  { path: "requests", title: "Requests", key: "r", view: Requests, detail: Request },
  { path: "usage", title: "Usage", key: "u", view: Usage },
  { path: "organizations", title: "Organizations", key: "o", view: Organizations, detail: Organization },
  { path: "ledger", title: "Ledger", key: "l", view: Ledger },
  { path: "statements", title: "Statements", key: "m", view: Statements, detail: Statement },
  { path: "holds", title: "Open holds", key: "h", view: Holds },
  { path: "videos", title: "Videos", key: "v", view: Videos, detail: Video },
  { path: "routes", title: "Routes", key: "t", view: Routes },
  { path: "webhooks", title: "Webhooks", key: "w", view: Webhooks },
  { path: "audit", title: "Audit", key: "a", view: Audit },
  { path: "settings", title: "Settings", key: "s", view: Settings }
]
