import { Schema } from "effect"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly default?: unknown
  readonly examples?: ReadonlyArray<unknown>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
}

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const record = <A, I>(value: Schema.Schema<A, I>) => Schema.Record({ key: Schema.String, value })
const list = Schema.Array(Schema.String)

const JsonSchema: Schema.Schema<JsonSchema> = Schema.suspend(() =>
  Schema.Struct({
    $ref: optional(Schema.String),
    type: optional(Schema.Union(Schema.String, list)),
    description: optional(Schema.String),
    enum: optional(Schema.Array(Schema.Unknown)),
    default: optional(Schema.Unknown),
    examples: optional(Schema.Array(Schema.Unknown)),
    properties: optional(record(JsonSchema)),
    required: optional(list),
    items: optional(JsonSchema),
    anyOf: optional(Schema.Array(JsonSchema)),
    pattern: optional(Schema.String),
    format: optional(Schema.String),
    minimum: optional(Schema.Number),
    maximum: optional(Schema.Number),
    minLength: optional(Schema.Number),
    maxLength: optional(Schema.Number),
    minItems: optional(Schema.Number),
    maxItems: optional(Schema.Number)
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

/** What the page shows of the published document. */
export const decodeDocument: (document: unknown) => Document = Schema.decodeUnknownSync(Document)
