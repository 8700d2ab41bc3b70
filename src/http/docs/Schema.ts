import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Schema } from "effect"
import { NoSuchPath } from "../errors/Schemas.ts"

export const Docs = HttpApiGroup.make("docs")
  .add(HttpApiEndpoint.get("home", "/"))
  .add(HttpApiEndpoint.get("reference", "/docs"))
  .add(HttpApiEndpoint.get("guide", "/docs/:name").setPath(Schema.Struct({ name: Schema.String })))
  .add(HttpApiEndpoint.get("contract", "/v1/openapi.json"))
  .add(HttpApiEndpoint.get("adminContract", "/admin/v1/openapi.json"))
  .addError(NoSuchPath)
