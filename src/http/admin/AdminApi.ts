import { HttpApi, OpenApi } from "@effect/platform"
import { BlockListGroup } from "./blocklist/Schema.ts"
import { CreditsGroup } from "./credits/Schema.ts"
import { KeysGroup } from "./keys/Schema.ts"
import { LedgerGroup } from "./ledger/Schema.ts"
import { OrganizationsGroup } from "./organizations/Schema.ts"
import { Sessions } from "./session/Schema.ts"

/** For operators; over the same services as the commands. */
export class AdminApi extends HttpApi.make("admin")
  .add(Sessions)
  .add(OrganizationsGroup)
  .add(KeysGroup)
  .add(CreditsGroup)
  .add(LedgerGroup)
  .add(BlockListGroup)
  .prefix("/admin/v1")
  .annotateContext(
    OpenApi.annotations({
      title: "Generation Gateway admin API",
      version: "1.0.0",
      description: "What operators see and change, with the names of the commands' `--json`."
    })
  ) {}
