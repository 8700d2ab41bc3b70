import { HttpApi, type HttpApiGroup, OpenApi } from "@effect/platform"
import { Layer } from "effect"
import { adminPrefix, endpointsOf } from "../schema/Endpoints.ts"
import { KeysGroup, KeysHandlers } from "./KeyResource.ts"
import { CreditsGroup, CreditsHandlers, LedgerGroup, LedgerHandlers } from "./LedgerResource.ts"
import { ModelsGroup, ModelsHandlers } from "./ModelResource.ts"
import { AdminOptions, accessLayer } from "./OperatorAuthentication.ts"
import { AuditGroup, AuditHandlers, OperatorsGroup, OperatorsHandlers } from "./OperatorResource.ts"
import { OrganizationsGroup, OrganizationsHandlers } from "./OrganizationResource.ts"
import { PaymentsGroup, PaymentsHandlers } from "./PaymentResource.ts"
import { RequestsGroup, RequestsHandlers } from "./RequestResource.ts"
import {
  BlockListGroup,
  BlockListHandlers,
  CatalogGroup,
  CatalogHandlers,
  DashboardGroup,
  DashboardHandlers,
  InstancesGroup,
  InstancesHandlers,
  RoutesGroup,
  RoutesHandlers
} from "./RouteResource.ts"
import { SessionHandlers, Sessions } from "./SessionResource.ts"
import { UsageGroup, UsageHandlers } from "./UsageResource.ts"
import { VideosGroup, VideosHandlers } from "./VideoResource.ts"
import { WebhooksGroup, WebhooksHandlers } from "./WebhookResource.ts"

/** Collects endpoint groups with their handlers, so the API and its implementation cannot differ. */
class Resources<Groups extends HttpApiGroup.HttpApiGroup.Any, E, R, A, HandlersE, HandlersR> {
  readonly api: HttpApi.HttpApi<"admin", Groups, E, R>
  readonly handlers: Layer.Layer<A, HandlersE, HandlersR>

  constructor(api: HttpApi.HttpApi<"admin", Groups, E, R>, handlers: Layer.Layer<A, HandlersE, HandlersR>) {
    this.api = api
    this.handlers = handlers
  }

  with<Group extends HttpApiGroup.HttpApiGroup.Any, A2, E2, R2>(group: Group, handlers: Layer.Layer<A2, E2, R2>) {
    return new Resources(this.api.add(group), Layer.merge(this.handlers, handlers))
  }
}

/** The API document lists the groups in this order. */
const resources = new Resources(HttpApi.make("admin"), Layer.empty)
  .with(Sessions, SessionHandlers)
  .with(OrganizationsGroup, OrganizationsHandlers)
  .with(DashboardGroup, DashboardHandlers)
  .with(RequestsGroup, RequestsHandlers)
  .with(UsageGroup, UsageHandlers)
  .with(KeysGroup, KeysHandlers)
  .with(CreditsGroup, CreditsHandlers)
  .with(LedgerGroup, LedgerHandlers)
  .with(PaymentsGroup, PaymentsHandlers)
  .with(BlockListGroup, BlockListHandlers)
  .with(AuditGroup, AuditHandlers)
  .with(InstancesGroup, InstancesHandlers)
  .with(OperatorsGroup, OperatorsHandlers)
  .with(WebhooksGroup, WebhooksHandlers)
  .with(ModelsGroup, ModelsHandlers)
  .with(RoutesGroup, RoutesHandlers)
  .with(CatalogGroup, CatalogHandlers)
  .with(VideosGroup, VideosHandlers)

/** The admin API. Its handlers call the same services as the CLI's commands. */
export class AdminApi extends resources.api.prefix(adminPrefix).annotateContext(
  OpenApi.annotations({
    title: "Generation Gateway admin API",
    version: "1.0.0",
    description: "Manage the gateway. Fields have the same names as in the commands' `--json` output."
  })
) {}

export const AdminRoutes = (options: typeof AdminOptions.Service) =>
  resources.handlers.pipe(
    Layer.provide(accessLayer(endpointsOf(AdminApi))),
    Layer.provide(Layer.succeed(AdminOptions, options))
  )
