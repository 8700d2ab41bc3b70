import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { NoSuchPath } from "../errors/Schemas.ts"

export const Console = HttpApiGroup.make("console")
  .add(HttpApiEndpoint.get("page", "/console"))
  .add(HttpApiEndpoint.get("file", "/console/*").setPath(Schema.Struct({ "*": Schema.String })))
  .addError(NoSuchPath)
