import { HttpApi, OpenApi } from "@effect/platform"
import { AuditGroup } from "./audit/Schema.ts"
import { BlockListGroup } from "./blocklist/Schema.ts"
import { CatalogGroup } from "./catalog/Schema.ts"
import { CreditsGroup } from "./credits/Schema.ts"
import { InstancesGroup } from "./instances/Schema.ts"
import { KeysGroup } from "./keys/Schema.ts"
import { LedgerGroup } from "./ledger/Schema.ts"
import { NowGroup } from "./now/Schema.ts"
import { OperatorsGroup } from "./operators/Schema.ts"
import { OrganizationsGroup } from "./organizations/Schema.ts"
import { PaymentsGroup } from "./payments/Schema.ts"
import { RequestsGroup } from "./requests/Schema.ts"
import { RoutesGroup } from "./routes/Schema.ts"
import { Sessions } from "./session/Schema.ts"
import { UsageGroup } from "./usage/Schema.ts"
import { VideosGroup } from "./videos/Schema.ts"
import { WebhooksGroup } from "./webhooks/Schema.ts"

/** For operators; over the same services as the commands. */
export class AdminApi extends HttpApi.make("admin")
  .add(Sessions)
  .add(OrganizationsGroup)
  .add(NowGroup)
  .add(RequestsGroup)
  .add(UsageGroup)
  .add(KeysGroup)
  .add(CreditsGroup)
  .add(LedgerGroup)
  .add(PaymentsGroup)
  .add(BlockListGroup)
  .add(AuditGroup)
  .add(InstancesGroup)
  .add(OperatorsGroup)
  .add(WebhooksGroup)
  .add(RoutesGroup)
  .add(CatalogGroup)
  .add(VideosGroup)
  .prefix("/admin/v1")
  .annotateContext(
    OpenApi.annotations({
      title: "Generation Gateway admin API",
      version: "1.0.0",
      description: "What operators see and change, with the names of the commands' `--json`."
    })
  ) {}
