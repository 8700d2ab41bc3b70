import { OpenApi } from "@effect/platform"
import { Record } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import { AdminApi } from "../admin/AdminApi.ts"
import { idempotencyKey } from "../schema/Headers.ts"
import { errorContent } from "./DocumentedErrors.ts"
import { failureSchemasOf, platformSchemas } from "./OpenApi.ts"

type Operation = OpenApi.OpenAPISpecOperation

const repeatable = {
  name: idempotencyKey,
  in: "header",
  required: false,
  schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  description: "A repeated change with the same key answers the first result, and changes nothing."
}

const signIn = "session.open"

/** Where only the platform's decoding can fail, that is all it has. */
const decoding = { description: "The request is wrong.", failures: [InvalidRequest] }

const describeError = (response: OpenApi.OpenApiSpecResponse) => {
  const ours = failureSchemasOf(response)
  const failures = ours.length === 0 ? [decoding] : ours
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
    : { parameters: [...operation.parameters, repeatable] }),
  security: operation.operationId === signIn ? [] : [{ token: [] }, { session: [] }],
  responses: Record.map({ ...operation.responses }, (response, status) =>
    Number(status) < 400 ? response : describeError(response)
  )
})

const securitySchemes = {
  token: { type: "http", scheme: "bearer", description: "`Authorization: Bearer <an operator's token>`" },
  session: { type: "apiKey", in: "cookie", name: "gateway_session", description: "The console's." }
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
