import { Ajv2020 } from "ajv/dist/2020.js"
import { FastCheck as fc } from "effect"
import { jsonFromSchema } from "../../../src/providers/sandbox/JsonFromSchema.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { formats, object, schema } from "./JsonSchemas.ts"

const ajv = new Ajv2020({ strict: false, allErrors: false, formats })

const errorsIn = (schema: object | boolean, value: unknown): string | undefined => {
  const valid = ajv.compile(schema)
  const text = valid(value) ? undefined : ajv.errorsText(valid.errors)
  if (typeof schema === "object") ajv.removeSchema(schema)
  return text
}

const assertValid = (schema: object | boolean, prompt = "What is the weather in Paris in celsius for 3 days?") => {
  const value = jsonFromSchema(schema, prompt)
  const errors = errorsIn(schema, value)
  assert.isUndefined(errors, `${errors}: ${JSON.stringify(value)} for ${JSON.stringify(schema)}`)
  return value
}

describe("jsonFromSchema", () => {
  // Excluded: not, if, contains, propertyNames, patternProperties, dependentRequired, dependentSchemas, and branches
  // of oneOf that share values.
  it("satisfies any schema that can be satisfied", () => {
    fc.assert(
      fc.property(schema, fc.string({ maxLength: 60 }), (one, prompt) => {
        assertValid(one, prompt)
      }),
      { numRuns: runs(400), seed: 7 }
    )
  })

  it("gives the same value for the same input", () => {
    fc.assert(
      fc.property(schema, fc.string(), (one, prompt) => {
        assert.deepStrictEqual(jsonFromSchema(one, prompt), jsonFromSchema(one, prompt))
      }),
      { numRuns: runs(100), seed: 8 }
    )
  })

  const far = Number.MAX_SAFE_INTEGER
  it.each([
    ["an integer of any size", { type: "integer", minimum: -far, maximum: far }, 1],
    ["an int32", { type: "integer", minimum: -2_147_483_648, maximum: 2_147_483_647 }, 1],
    ["an uint64", { type: "integer", minimum: 0, maximum: 2 ** 64 }, 0],
    ["a double", { type: "number", minimum: -Number.MAX_VALUE, maximum: Number.MAX_VALUE }, 1],
    ["a positive double", { type: "number", exclusiveMinimum: 0, maximum: Number.MAX_VALUE }, 0.5],
    ["an age", { type: "integer", minimum: 18, maximum: far }, 18],
    ["a latitude", { type: "number", minimum: -90, maximum: 90 }, 1],
    ["what is not positive", { type: "integer", minimum: -far, maximum: 0 }, 0],
    ["what is far below zero", { type: "integer", minimum: -far, maximum: -40 }, -40],
    ["a fraction around zero", { type: "number", minimum: -0.5, maximum: 0.5 }, -0.5]
  ] as const)("gives a number near one within the bounds: %s", (_, one, expected) => {
    assert.strictEqual(assertValid(one, "Count."), expected)
  })

  it("gives neighbouring numbers if they must differ", () => {
    const items = { type: "integer", minimum: -3, maximum: 3 }
    const all = { type: "array", items, minItems: 7, uniqueItems: true }
    assert.deepStrictEqual(assertValid(all, "Count."), [1, 2, 3, 0, -1, -2, -3])
  })

  it("takes its values from the prompt", () => {
    const weather = object({
      city: { type: "string" },
      unit: { enum: ["fahrenheit", "celsius"] },
      days: { type: "integer", minimum: 1, maximum: 7 }
    })
    assert.deepStrictEqual(assertValid(weather), { city: "Paris", unit: "celsius", days: 3 })
    const names = object({ from: { type: "string" }, to: { type: "string" } })
    assert.deepStrictEqual(assertValid(names, "Fly from San Francisco to Oslo"), { from: "San Francisco", to: "Oslo" })
    assert.deepStrictEqual(assertValid(names, 'Call it "the long way"'), { from: "the long way", to: "the long way 2" })
  })

  const cases: Record<string, object | boolean> = {
    anything: true,
    "an empty schema": {},
    "a local reference": { $ref: "#/$defs/a~1b", $defs: { "a/b": object({ x: { type: "integer" } }) } },
    "old definitions": { ...object({ p: { $ref: "#/definitions/P" } }), definitions: { P: { type: "number" } } },
    "a tree of optional children": {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          ...object({ name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } }, [
            "name"
          ]),
          additionalProperties: false
        }
      }
    },
    "a list that ends with null": {
      $ref: "#/$defs/node",
      $defs: {
        node: object({ value: { type: "integer" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } })
      }
    },
    "a long conjunction": { allOf: Array.from({ length: 150 }, (_, at) => object({ [`p${at}`]: { const: at } })) },
    "branches that exclude each other": {
      type: "object",
      properties: { email: { type: "string", format: "email" }, phone: { type: "string", pattern: "^\\+\\d{8,12}$" } },
      oneOf: [{ required: ["email"] }, { required: ["phone"] }]
    },
    "a branch that Zod writes for undefined": { anyOf: [{ not: {} }, { type: "integer" }] },
    "texts of two kinds that must differ": {
      type: "array",
      items: { anyOf: [{ const: "a" }, { const: "b" }] },
      minItems: 2,
      uniqueItems: true
    },
    "a default that lacks what is required": { ...object({ a: { type: "string", default: "x" } }), default: {} },
    "a discriminated union whose kinds have defaults": {
      oneOf: [
        object({ kind: { const: "circle", default: "circle" }, radius: { type: "number" } }, ["radius"]),
        object({ kind: { const: "square", default: "square" }, side: { type: "number" } }, ["side"])
      ]
    },
    "a discriminated union": {
      oneOf: [
        object({ kind: { const: "circle" }, radius: { type: "number", exclusiveMinimum: 0 } }),
        object({ kind: { const: "square" }, side: { type: "number", exclusiveMinimum: 0 } })
      ]
    },
    "intersected limits": {
      allOf: [{ type: "integer", minimum: 3 }, { maximum: 9 }, { multipleOf: 4 }, { type: "number" }]
    },
    "merged properties": {
      allOf: [object({ a: { type: "string", minLength: 3 } }), object({ a: { maxLength: 5 }, b: { type: "boolean" } })]
    },
    "unique items": { type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true, minItems: 3 },
    "unique numbers": { type: "array", items: { type: "integer", minimum: 1 }, uniqueItems: true, minItems: 40 },
    "unique short texts": { type: "array", items: { type: "string", maxLength: 1 }, uniqueItems: true, minItems: 9 },
    "unique objects": {
      type: "array",
      items: object({ on: { type: "boolean" }, tag: { type: "string", maxLength: 4 } }),
      uniqueItems: true,
      minItems: 5
    },
    "free names": { type: "object", additionalProperties: { type: "number" }, minProperties: 2 },
    "few properties": { ...object({ a: {}, b: {}, c: {} }, ["b"]), maxProperties: 1 },
    "a long text": { type: "string", minLength: 500, maxLength: 500 },
    "characters of two units": { const: "😀😀😀", minLength: 3, maxLength: 3 },
    "negative limits": { type: "integer", maximum: -5 },
    "huge limits": { type: "integer", minimum: 9007199254740000 },
    "a narrow gap": { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 0.001 },
    cents: { type: "number", multipleOf: 0.01, minimum: 0.07, maximum: 0.29 },
    "whole halves": { type: "integer", multipleOf: 1.5 },
    "an old tuple": {
      type: "array",
      prefixItems: [{ type: "string" }, { type: "integer" }],
      minItems: 2,
      items: false
    },
    "names of the prototype": { type: "object", required: ["constructor", "toString"] }
  }
  for (const [name, one] of Object.entries(cases)) it(`satisfies ${name}`, () => void assertValid(one))

  it("prefers what the schema suggests", () => {
    assert.strictEqual(assertValid({ type: "string", default: "metric" }), "metric")
    assert.strictEqual(assertValid({ type: "string", examples: ["NL-1"], pattern: "^[A-Z]{2}-\\d$" }), "NL-1")
    assert.notStrictEqual(assertValid({ type: "integer", default: "wrong" }), "wrong")
  })

  it("ignores a pattern", () => {
    fc.assert(
      fc.property(fc.string(), fc.record({ minLength: fc.nat(30) }, { requiredKeys: [] }), (pattern, limits) => {
        const text = { type: "string", ...limits }
        assert.strictEqual(jsonFromSchema({ ...text, pattern }, "Oslo"), jsonFromSchema(text, "Oslo"))
      }),
      { numRuns: runs(100), seed: 9 }
    )
    const text = { type: "string", minLength: 30, maxLength: 30 }
    assert.strictEqual(jsonFromSchema({ ...text, pattern: "^[A-Z]{3}$" }, "Oslo"), assertValid(text, "Oslo"))
  })

  it("takes no name for more than a name", () => {
    const schema: unknown = JSON.parse(
      '{"type":"object","properties":{"__proto__":{"const":1}},"required":["__proto__"]}'
    )
    assert.strictEqual(JSON.stringify(jsonFromSchema(schema, "")), '{"__proto__":1}')
  })

  it("ends a recursion as soon as its schema lets it", () => {
    for (const end of [{ type: ["object", "null"] }, { anyOf: [{ type: "object" }, { type: "null" }] }]) {
      const list = { ...end, properties: { next: { $ref: "#" } }, required: ["next"] }
      assert.isAtMost(JSON.stringify(assertValid(list)).length, 80)
    }
  })

  it("leaves optional properties out where they cannot be", () => {
    assert.deepStrictEqual(assertValid({ type: "object", properties: { never: false, a: { const: 1 } } }), { a: 1 })
  })
})
