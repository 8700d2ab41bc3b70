import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Statement } from "../../services/statements/Statement.ts"
import { ReadErrors, UsageBusy, WrongQuery } from "../errors/Schemas.ts"
import { Authenticated } from "../schema/Headers.ts"
import { monthParameter } from "../schema/MonthParameter.ts"

const show = HttpApiEndpoint.get("show", "/statement")
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .addError(ReadErrors)
  .addError(WrongQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getStatement", summary: "Get the statement of a month" }))

export const StatementGroup = HttpApiGroup.make("statement").add(show).middleware(Authenticated)
