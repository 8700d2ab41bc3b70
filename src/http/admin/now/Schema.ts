import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { NowRecord } from "../../../services/admin/now/Record.ts"
import { ReadAccess, ReadErrors } from "../Access.ts"

const read = HttpApiEndpoint.get("read", "/now")
  .addSuccess(NowRecord)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "What happens now, and what needs an operator")

export const NowGroup = HttpApiGroup.make("now").add(read).addError(ReadErrors)
