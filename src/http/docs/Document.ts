import { Schema } from "effect"
import { optionalExact as optional } from "../../domain/Constraints.ts"

const record = <A, I>(value: Schema.Schema<A, I>) => Schema.Record({ key: Schema.String, value })
const list = Schema.Array(Schema.String)

const scalarFields = {
  $ref: optional(Schema.String),
  type: optional(Schema.Union(Schema.String, list)),
  description: optional(Schema.String),
  enum: optional(Schema.Array(Schema.Unknown)),
  default: optional(Schema.Unknown),
  examples: optional(Schema.Array(Schema.Unknown)),
  required: optional(list),
  pattern: optional(Schema.String),
  format: optional(Schema.String),
  minimum: optional(Schema.Number),
  maximum: optional(Schema.Number),
  minLength: optional(Schema.Number),
  maxLength: optional(Schema.Number),
  minItems: optional(Schema.Number),
  maxItems: optional(Schema.Number)
}

export interface JsonSchema extends Schema.Struct.Type<typeof scalarFields> {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
}

const JsonSchema: Schema.Schema<JsonSchema> = Schema.suspend(() =>
  Schema.Struct({
    ...scalarFields,
    properties: optional(record(JsonSchema)),
    items: optional(JsonSchema),
    anyOf: optional(Schema.Array(JsonSchema))
  })
)

const MediaType = Schema.Struct({
  schema: JsonSchema,
  examples: optional(record(Schema.Struct({ value: Schema.Unknown })))
})

const Parameter = Schema.Struct({
  name: Schema.String,
  in: Schema.Literal("path", "query", "header"),
  required: optional(Schema.Boolean),
  description: optional(Schema.String),
  schema: JsonSchema
})

const Response = Schema.Struct({
  description: Schema.String,
  headers: optional(record(Schema.Struct({ description: Schema.String }))),
  content: optional(record(MediaType))
})

const Operation = Schema.Struct({
  operationId: Schema.String,
  tags: list,
  summary: Schema.String,
  description: optional(Schema.String),
  parameters: Schema.Array(Parameter),
  requestBody: optional(Schema.Struct({ content: record(MediaType) })),
  responses: record(Response)
})

const Document = Schema.Struct({
  info: Schema.Struct({ title: Schema.String, version: Schema.String, description: Schema.String }),
  servers: Schema.Tuple(Schema.Struct({ url: Schema.String })),
  tags: Schema.Array(Schema.Struct({ name: Schema.String, description: optional(Schema.String) })),
  paths: record(record(Operation)),
  components: Schema.Struct({ schemas: record(JsonSchema) })
})

export type Document = typeof Document.Type
export type MediaType = typeof MediaType.Type
export type Operation = typeof Operation.Type
export type Parameter = typeof Parameter.Type
export type Response = typeof Response.Type

/** Decodes the parts of the published document that the page shows. */
export const decodeDocument: (document: unknown) => Document = Schema.decodeUnknownSync(Document)
