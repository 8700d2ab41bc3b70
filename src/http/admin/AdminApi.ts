import { HttpApi, type HttpApiGroup, OpenApi } from "@effect/platform"
import { Layer, Record } from "effect"
import { errorContent, failureSchemasOf, platformSchemas } from "../openapi/OpenApi.ts"
import { adminPrefix, endpointsOf } from "../schema/Endpoints.ts"
import { idempotencyKey } from "../schema/Headers.ts"
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

type Operation = OpenApi.OpenAPISpecOperation

const idempotencyParameter = {
  name: idempotencyKey,
  in: "header",
  required: false,
  schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  description: "A repeated request with the same key returns the first result and changes nothing."
}

const signInOperation = "session.open"

/** Describes a 400 of an endpoint that declares no failures, so that only the platform's decoding can fail. */
const decodeFailure = { description: "The request is invalid.", failures: ["InvalidRequest"] } as const

const describeError = (response: OpenApi.OpenApiSpecResponse) => {
  const schemas = failureSchemasOf(response)
  const failures = schemas.length === 0 ? [decodeFailure] : schemas
  return {
    description: failures.map(({ description }) => description).join(" "),
    content: {
      "application/json": errorContent(
        failures.flatMap((one) => one.failures),
        "admin"
      )
    }
  }
}

const describeOperation = (method: string, operation: Operation): object => ({
  ...operation,
  ...(method === "get" || operation.operationId.startsWith("session.")
    ? {}
    : { parameters: [...operation.parameters, idempotencyParameter] }),
  security: operation.operationId === signInOperation ? [] : [{ token: [] }, { session: [] }],
  responses: Record.map({ ...operation.responses }, (response, status) =>
    Number(status) < 400 ? response : describeError(response)
  )
})

const securitySchemes = {
  token: { type: "http", scheme: "bearer", description: "`Authorization: Bearer <an operator's token>`" },
  session: { type: "apiKey", in: "cookie", name: "gateway_session", description: "The console's session cookie." }
}

const describeDocument = ({ components, paths }: Pick<OpenApi.OpenAPISpec, "paths" | "components">) => ({
  paths: Record.map(paths, (item) =>
    Record.map<string, Operation, object>({ ...item }, (operation, method) => describeOperation(method, operation))
  ),
  components: {
    securitySchemes,
    schemas: Record.filter(components.schemas, (_, name) => !platformSchemas.has(name))
  }
})

const Published = AdminApi.annotate(OpenApi.Transform, ({ components, paths, ...rest }) => ({
  ...rest,
  ...describeDocument({ components, paths })
}))

export const adminDocument = (): OpenApi.OpenAPISpec =>
  OpenApi.fromApi(Published, { additionalPropertiesStrategy: "allow" })
