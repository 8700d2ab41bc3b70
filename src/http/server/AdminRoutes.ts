import { Layer } from "effect"
import { AuditHandlers } from "../admin/audit/Handlers.ts"
import { BlockListHandlers } from "../admin/blocklist/Handlers.ts"
import { CatalogHandlers } from "../admin/catalog/Handlers.ts"
import { CreditsHandlers } from "../admin/credits/Handlers.ts"
import { InstancesHandlers } from "../admin/instances/Handlers.ts"
import { KeysHandlers } from "../admin/keys/Handlers.ts"
import { LedgerHandlers } from "../admin/ledger/Handlers.ts"
import { NowHandlers } from "../admin/now/Handlers.ts"
import { AccessLayer, AdminOptions } from "../admin/OperatorAuthentication.ts"
import { OperatorsHandlers } from "../admin/operators/Handlers.ts"
import { OrganizationsHandlers } from "../admin/organizations/Handlers.ts"
import { PaymentsHandlers } from "../admin/payments/Handlers.ts"
import { RequestsHandlers } from "../admin/requests/Handlers.ts"
import { RoutesHandlers } from "../admin/routes/Handlers.ts"
import { SessionHandlers } from "../admin/session/Handlers.ts"
import { UsageHandlers } from "../admin/usage/Handlers.ts"
import { VideosHandlers } from "../admin/videos/Handlers.ts"
import { WebhooksHandlers } from "../admin/webhooks/Handlers.ts"

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
  ).pipe(Layer.provide(AccessLayer), Layer.provide(Layer.succeed(AdminOptions, options)))
