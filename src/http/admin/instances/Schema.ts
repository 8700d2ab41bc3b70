import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Instance } from "../../../services/control/Instances.ts"
import { ReadAccess, ReadErrors } from "../Access.ts"
import { pageOf } from "../Page.ts"

const list = HttpApiEndpoint.get("list", "/instances")
  .addSuccess(pageOf(Instance, "Instances"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Processes that run, or ended within a day, newest first; always whole")

export const InstancesGroup = HttpApiGroup.make("instances").add(list).addError(ReadErrors)
