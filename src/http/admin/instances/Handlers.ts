import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Instances } from "../../../services/control/Instances.ts"
import { AdminApi } from "../AdminApi.ts"
import { wholePage } from "../Page.ts"

export const InstancesHandlers = HttpApiBuilder.group(AdminApi, "instances", (handlers) =>
  Effect.map(Instances, ({ list }) => handlers.handle("list", () => Effect.map(list, wholePage)))
)
