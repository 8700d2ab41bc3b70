import { OpenApi } from "@effect/platform"
import { Record } from "effect"
import { AdminApi } from "../admin/AdminApi.ts"
import { idempotencyKey } from "../schema/Headers.ts"
import { errorContent, failureSchemasOf, platformSchemas } from "./OpenApi.ts"

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

const describe = ({ components, paths }: Pick<OpenApi.OpenAPISpec, "paths" | "components">) => ({
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
  ...describe({ components, paths })
}))

export const adminDocument = (): OpenApi.OpenAPISpec =>
  OpenApi.fromApi(Published, { additionalPropertiesStrategy: "allow" })
