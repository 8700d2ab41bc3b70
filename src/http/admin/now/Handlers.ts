import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Now } from "../../../services/admin/now/Now.ts"
import { AdminApi } from "../AdminApi.ts"

export const NowHandlers = HttpApiBuilder.group(AdminApi, "now", (handlers) =>
  Effect.map(Now, ({ read }) => handlers.handle("read", () => read))
)
