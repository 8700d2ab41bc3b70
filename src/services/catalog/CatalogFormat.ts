import { JSONSchema, Schema } from "effect"
import { BaseUrl, FamilyEntry, Headers, Name, Options, optional, VariableName } from "./EntryFields.ts"
import { ModelEntry } from "./Surfaces.ts"

export const ProviderEntry = Schema.Struct({
  adapter: Name,
  base_url: optional(BaseUrl),
  credential: optional(VariableName),
  headers: optional(Headers),
  trace_context: optional(Schema.Boolean),
  options: optional(Options)
})
export type ProviderEntry = typeof ProviderEntry.Type

export const CatalogFile = Schema.Struct({
  providers: Schema.Record({ key: Schema.String, value: ProviderEntry }),
  models: Schema.NonEmptyArray(ModelEntry),
  families: optional(Schema.Record({ key: Schema.String, value: FamilyEntry }))
})

export const catalogJsonSchema = (): JSONSchema.JsonSchema7Root => ({
  ...JSONSchema.make(CatalogFile),
  title: "Generation gateway catalog"
})
