import { assert, describe, it } from "@effect/vitest"
import { jsonFromSchema } from "../../src/providers/sandbox/JsonFromSchema.ts"
import { object } from "../support/JsonSchemas.ts"

const loops = { $ref: "#", allOf: [{ $ref: "#" }], anyOf: [{ $ref: "#" }, { $ref: "#" }], not: { $ref: "#" } }
const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = [value]
  return value
}
const wide = <A>(width: number, make: (at: number) => A): ReadonlyArray<A> =>
  Array.from({ length: width }, (_, at) => make(at))
const named = (width: number) => Object.fromEntries(wide(width, (at) => [`name${at}`, { type: "string" }]))

const hostile: Record<string, () => object> = {
  "a loop of references": () => loops,
  "a reference to itself": () => ({ $ref: "#" }),
  "a chain without an end": () => object({ next: { $ref: "#" } }),
  "a recursion without an end": () => ({
    ...object({ a: { $ref: "#" }, b: { $ref: "#" }, c: { type: "array", items: { $ref: "#" }, minItems: 9 } })
  }),
  "a recursion with long names": () =>
    object({ ["k".repeat(50_000)]: { $ref: "#" }, ["l".repeat(50_000)]: { $ref: "#" } }),
  "a billion items": () => ({ type: "array", items: { type: "array", minItems: 1e9 }, minItems: 1e9 }),
  "a billion unique booleans": () => ({ type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 1e9 }),
  "a billion characters": () => ({ type: "array", items: { type: "string", minLength: 1e9 }, minItems: 1e9 }),
  "a billion properties": () => ({ type: "object", minProperties: 1e9 }),
  "a pattern that hangs": () => ({
    type: "string",
    pattern: "^(a+)+$",
    not: { pattern: "(((a*)*)*)*b" },
    minLength: 5000
  }),
  "a huge repeat": () => ({ type: "string", pattern: "^((a{1000000}){1000000}b?){1000000}$", minLength: 1e6 }),
  "empty repeats": () => ({ type: "string", pattern: "^((a{0}|){999999999}){999999999}$" }),
  "no pattern at all": () => ({ type: "string", pattern: "([" }),
  "deep groups": () => ({ type: "string", pattern: "(".repeat(499) + ")".repeat(499) }),
  "an impossible pattern": () => ({ type: "string", pattern: "a^b$c", minLength: 3 }),
  assertions: () => ({ type: "string", pattern: "^(?=.*\\d)(?!x)\\w+(?<=z)\\1$" }),
  "impossible limits": () =>
    object({ a: { type: "integer", minimum: 9, maximum: 1 }, b: { type: "string", minLength: 4, maxLength: 2 } }),
  "impossible types": () =>
    object({ a: { allOf: [{ type: "string" }, { type: "integer" }] }, b: false, c: { enum: [] } }),
  "keywords of the wrong kind": () => ({
    type: 5,
    properties: [],
    required: "a",
    enum: {},
    allOf: 3,
    $ref: 4,
    items: "x",
    minLength: "2"
  }),
  "wrong numbers": () => ({
    type: "number",
    multipleOf: 0,
    minimum: Number.MAX_VALUE,
    exclusiveMaximum: -Number.MAX_VALUE
  }),
  "tiny steps": () => ({ type: "integer", multipleOf: 1e-300, minimum: 1e300 }),
  "lost references": () =>
    object({
      a: { $ref: "#/nowhere/%E0%A4%A" },
      b: { $ref: "https://example.test/schema" },
      c: { $ref: "#/properties/c" }
    }),
  "a deep constant": () => ({ const: nested(20_000) }),
  "deep branches": () => {
    let schema: object = { type: "integer", maximum: 0, minimum: 1 }
    for (let level = 0; level < 2_000; level++) schema = { anyOf: [schema, schema], allOf: [schema] }
    return schema
  },
  "many branches": () => ({ anyOf: wide(50_000, () => false), allOf: wide(50_000, () => ({ type: "string" })) }),
  "many choices": () => object({ a: { enum: wide(100_000, String) }, b: { enum: wide(100_000, String), const: 1 } }),
  "many properties": () => ({ type: "object", properties: named(50_000), required: Object.keys(named(50_000)) }),
  "large constants": () => ({ type: "array", minItems: 1000, items: { const: "x".repeat(200_000) } }),
  "many patterns for names": () => ({
    type: "object",
    minProperties: 100,
    patternProperties: Object.fromEntries(wide(2_000, (at) => [`^(a*)*b{${at}}$`, { type: "string" }]))
  })
}

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

describe("a hostile schema", () => {
  for (const [name, make] of Object.entries(hostile)) {
    it(`is bounded in time and size: ${name}`, { timeout: 5_000 }, () => {
      const value = jsonFromSchema(make(), "a prompt with some words")
      assert.isAtMost(JSON.stringify(value).length, 500_000)
      assert.isAtMost(depthOf(value), 100)
    })
  }
})
