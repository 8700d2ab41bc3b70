import { HttpApi, OpenApi } from "@effect/platform"
import { OrganizationsGroup } from "./organizations/Schema.ts"
import { RequestsGroup } from "./requests/Schema.ts"
import { Sessions } from "./session/Schema.ts"

/** For operators; over the same services as the commands. */
export class AdminApi extends HttpApi.make("admin")
  .add(Sessions)
  .add(OrganizationsGroup)
  .add(RequestsGroup)
  .prefix("/admin/v1")
  .annotateContext(
    OpenApi.annotations({
      title: "Generation Gateway admin API",
      version: "1.0.0",
      description: "What operators see and change, with the names of the commands' `--json`."
    })
  ) {}
