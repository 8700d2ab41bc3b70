import { HttpApi, OpenApi } from "@effect/platform"
import { Layer } from "effect"
import { endpointsOf } from "../schema/Endpoints.ts"
import { AuditGroup, AuditHandlers } from "./Audit.ts"
import { BlockListGroup, BlockListHandlers } from "./BlockList.ts"
import { CatalogGroup, CatalogHandlers } from "./Catalog.ts"
import { CreditsGroup, CreditsHandlers } from "./Credits.ts"
import { KeysGroup, KeysHandlers } from "./Keys.ts"
import { LedgerGroup, LedgerHandlers } from "./Ledger.ts"
import { InstancesGroup, InstancesHandlers, NowGroup, NowHandlers } from "./Now.ts"
import { AdminOptions, accessLayer } from "./OperatorAuthentication.ts"
import { OperatorsGroup, OperatorsHandlers } from "./Operators.ts"
import { OrganizationsGroup, OrganizationsHandlers } from "./Organizations.ts"
import { PaymentsGroup, PaymentsHandlers } from "./Payments.ts"
import { RequestsGroup, RequestsHandlers } from "./Requests.ts"
import { RoutesGroup, RoutesHandlers } from "./Routes.ts"
import { SessionHandlers, Sessions } from "./Session.ts"
import { UsageGroup, UsageHandlers } from "./Usage.ts"
import { VideosGroup, VideosHandlers } from "./Videos.ts"
import { WebhooksGroup, WebhooksHandlers } from "./Webhooks.ts"

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

export const AdminRoutes = (options: typeof AdminOptions.Service) =>
  Layer.mergeAll(
    SessionHandlers,
    OrganizationsHandlers,
    NowHandlers,
    RequestsHandlers,
    UsageHandlers,
    KeysHandlers,
    CreditsHandlers,
    LedgerHandlers,
    PaymentsHandlers,
    BlockListHandlers,
    AuditHandlers,
    InstancesHandlers,
    OperatorsHandlers,
    WebhooksHandlers,
    RoutesHandlers,
    CatalogHandlers,
    VideosHandlers
  ).pipe(Layer.provide(accessLayer(endpointsOf(AdminApi))), Layer.provide(Layer.succeed(AdminOptions, options)))
