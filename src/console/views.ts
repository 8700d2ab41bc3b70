import type { ComponentType } from "preact"
import { Now } from "./views/now/Now.tsx"
import { Request } from "./views/requests/Request.tsx"
import { Requests } from "./views/requests/Requests.tsx"
import { Routes } from "./views/routes/Routes.tsx"
import { Usage } from "./views/usage/Usage.tsx"
import { Video } from "./views/videos/Video.tsx"
import { Videos } from "./views/videos/Videos.tsx"
import { Webhooks } from "./views/webhooks/Webhooks.tsx"

export interface View {
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
  { path: "videos", title: "Videos", key: "v", view: Videos, detail: Video },
  { path: "routes", title: "Routes", key: "t", view: Routes },
  { path: "webhooks", title: "Webhooks", key: "w", view: Webhooks }
]
