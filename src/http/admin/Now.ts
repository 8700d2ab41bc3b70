import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect } from "effect"
import { Now } from "../../services/admin/now/Now.ts"
import { NowRecord } from "../../services/admin/now/Record.ts"
import { Instance, Instances } from "../../services/control/Instances.ts"
import { adminApiOf, ReadAccess, ReadErrors } from "./Access.ts"
import { pageOf, wholePage } from "./Page.ts"

const read = HttpApiEndpoint.get("read", "/now")
  .addSuccess(NowRecord)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "What happens now, and what needs an operator")

export const NowGroup = HttpApiGroup.make("now").add(read).addError(ReadErrors)

export const NowHandlers = HttpApiBuilder.group(adminApiOf(NowGroup), "now", (handlers) =>
  Effect.map(Now, ({ read }) => handlers.handle("read", () => read))
)

const list = HttpApiEndpoint.get("list", "/instances")
  .addSuccess(pageOf(Instance, "Instances"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Processes that run, or ended within a day, newest first; always whole")

export const InstancesGroup = HttpApiGroup.make("instances").add(list).addError(ReadErrors)

export const InstancesHandlers = HttpApiBuilder.group(adminApiOf(InstancesGroup), "instances", (handlers) =>
  Effect.map(Instances, ({ list }) => handlers.handle("list", () => Effect.map(list, wholePage)))
)
