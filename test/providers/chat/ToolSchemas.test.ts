import { rules as anthropic } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import {
  declinesFormat,
  fitAnswerFormat,
  fitNativeTool,
  fitTools,
  makeStrictBudget
} from "../../../src/providers/chat/Fitting.ts"
import { fitRoot } from "../../../src/providers/chat/ToolSchemas.ts"
import { rules as openAi } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { wireRules } from "./Wires.ts"

type Schema = Readonly<Record<string, unknown>>

const fit = (schema: Schema) => fitRoot(schema, "properties")
const text = { type: "string" } as const
const count = { type: "integer", minimum: 1 } as const
const closed = (properties: Schema, required = Object.keys(properties)) => {
  return { type: "object", properties, required, additionalProperties: false }
}

describe("the root of a schema", () => {
  it("is left as it is where it is an object", () => {
    for (const schema of [
      { type: "object", properties: {} },
      { type: "object", properties: { a: { anyOf: [text, count] } }, required: ["a"], $defs: {}, minProperties: 1 }
    ]) {
      assert.strictEqual(fit(schema).schema, schema)
      assert.strictEqual(fitRoot(schema, "object").schema, schema)
    }
    const bare = { type: "object" }
    assert.strictEqual(fitRoot(bare, "object").schema, bare)
  })

  it("gets a type and properties", () => {
    const empty = { type: "object", properties: {} }
    assert.deepStrictEqual<unknown>(fit({}), { schema: empty })
    assert.deepStrictEqual<unknown>(fit({ type: "object" }), { schema: empty })
    assert.deepStrictEqual<unknown>(fit({ type: "object", properties: null }), { schema: empty })
    assert.deepStrictEqual<unknown>(fit({ type: "object", additionalProperties: text }), {
      schema: { ...empty, additionalProperties: text }
    })
    const properties = { a: text }
    const fitted = fit({ properties, required: ["a"] })
    assert.deepStrictEqual<unknown>(fitted, { schema: { type: "object", properties, required: ["a"] } })
    assert.strictEqual(fitted.schema.properties, properties)
    const nullable = fit({ type: ["object", "null"], properties })
    assert.deepStrictEqual<unknown>(nullable, { schema: { type: "object", properties } })
    assert.strictEqual(nullable.schema.properties, properties)
  })

  it.each(["anyOf", "oneOf"])(
    "merges the branches of %s: all properties, what each requires, and the rest in words",
    (word) => {
      const kind = (value: string) => ({ const: value })
      const shared = { type: "string", description: "Shared." }
      const branches = [
        { type: "object", properties: { kind: kind("a"), shared, a: text }, required: ["kind", "a"] },
        { type: "object", properties: { kind: kind("b"), shared, b: count }, required: ["kind", "b"] },
        { type: "object", properties: { kind: kind("c"), a: count }, required: ["kind"] },
        { type: "null" }
      ]
      const { removed, schema } = fit({ description: "D", [word]: branches })
      assert.deepStrictEqual<unknown>(schema, {
        type: "object",
        description: "D",
        properties: {
          kind: { anyOf: [kind("a"), kind("b"), kind("c")] },
          shared,
          a: { anyOf: [text, count] },
          b: count
        },
        required: ["kind"]
      })
      assert.strictEqual(Object(schema.properties).shared, shared)
      assert.strictEqual(Object(schema.properties).b, count)
      assert.deepStrictEqual<unknown>(removed, {
        [word]: [
          { properties: { kind: kind("a") }, required: ["kind", "a"] },
          { properties: { kind: kind("b") }, required: ["kind", "b"] },
          { properties: { kind: kind("c") }, required: ["kind"] },
          { type: "null" }
        ]
      })
    }
  )

  it("keeps its own properties beside branches that only require", () => {
    const properties = { id: text, name: text }
    const anyOf = [{ required: ["id"] }, { required: ["name"] }]
    const { removed, schema } = fit({ type: "object", properties, additionalProperties: false, anyOf })
    assert.deepStrictEqual<unknown>(schema, { type: "object", properties, additionalProperties: false })
    assert.strictEqual(schema.properties, properties)
    assert.deepStrictEqual<unknown>(removed, { anyOf })
  })

  it("merges all of allOf, with all that they require", () => {
    const allOf = [
      { properties: { a: text, both: text }, required: ["a"] },
      { properties: { b: count, both: { minLength: 2 } }, required: ["b"] }
    ]
    assert.deepStrictEqual<unknown>(fit({ type: "object", properties: { own: text }, required: ["own"], allOf }), {
      schema: {
        type: "object",
        properties: { own: text, a: text, both: { allOf: [text, { minLength: 2 }] }, b: count },
        required: ["own", "a", "b"]
      }
    })
  })

  it("has the meaning of a local reference in its place", () => {
    const place = closed({ city: { $ref: "#/$defs/a~1b%20c" } })
    const $defs = { place, "a/b c": text }
    assert.deepStrictEqual<unknown>(fit({ $ref: "#/$defs/place", $defs }), { schema: { ...place, $defs } })
    const union = fit({ anyOf: [{ $ref: "#/$defs/place" }, closed({ zip: text })], $defs })
    assert.deepStrictEqual<unknown>(union.schema, {
      type: "object",
      $defs,
      properties: { ...place.properties, zip: text },
      additionalProperties: false
    })
  })

  it.each([
    ["one that leads nowhere", { $ref: "#/$defs/none" }],
    ["one to another document", { $ref: "https://x.test/schema" }],
    ["one to itself", { $ref: "#" }],
    ["one in a circle", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }]
  ])("describes a reference that has no meaning here: %s", (_, schema) => {
    const fitted = fit(schema)
    assert.deepStrictEqual<unknown>(fitted.schema.properties, {})
    assert.deepStrictEqual<unknown>(fitted.removed, { $ref: schema.$ref })
  })

  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  const condition = { if: { required: ["a"] }, then: { required: ["b"] } }

  it.each([
    ["a condition", condition],
    ["a choice", { anyOf: [{ required: ["a"] }, { required: ["b"] }] }],
    ["what may not be", { not: { required: ["a"] } }],
    ["a count", { minProperties: 1 }],
    ["a condition further down", { allOf: [condition] }]
  ])("says in words what a part says beyond properties: %s", (_, rule) => {
    const own = { type: "object", properties: { a: text, b: text } }
    assert.deepStrictEqual<unknown>(fit({ ...own, allOf: [{ type: "object", properties: { a: text } }, rule] }), {
      schema: own,
      removed: { allOf: [rule] }
    })
    const $defs = { args: { ...own, required: ["a"], ...rule } }
    const referenced = fit({ $ref: "#/$defs/args", $defs })
    assert.deepStrictEqual<unknown>(referenced.schema, { ...own, required: ["a"], $defs })
    assert.deepStrictEqual<unknown>(referenced.removed, { allOf: [{ ...rule, required: ["a"] }] })
    const alone = fit({ oneOf: [{ ...own, required: ["a"], ...rule }] })
    assert.deepStrictEqual<unknown>(alone.removed, { oneOf: [{ ...rule, required: ["a"] }] })
  })

  it.each([{ not: { required: ["a"] } }, { enum: [{ a: 1 }] }, { const: { a: 1 } }])("says %j in words", (rule) => {
    const properties = { a: text }
    assert.deepStrictEqual<unknown>(fit({ type: "object", properties, ...rule }), {
      schema: { type: "object", properties },
      removed: rule
    })
  })

  it("is merged in bounded time, however often branches meet again", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `d${at}`,
        { anyOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] }
      ])
    )
    const fitted = fit({ $ref: "#/$defs/d0", $defs })
    assert.deepStrictEqual<unknown>(fitted.schema.properties, {})
    assert.isDefined(fitted.removed)
  })

  it("is merged in bounded time, however many properties each branch has", () => {
    const wide = closed(Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`p${at}`, text])))
    const fitted = fit({ allOf: Array.from({ length: 100 }, () => ({ $ref: "#/$defs/wide" })), $defs: { wide } })
    assert.strictEqual(Object.keys(Object(fitted.schema.properties)).length, 4_000)
    assert.isDefined(fitted.removed)
  })

  it("has properties of any name", () => {
    const schema: Schema = JSON.parse('{"allOf":[{"properties":{"__proto__":{"type":"string"},"toString":{}}}]}')
    const properties = fit(schema).schema.properties
    assert.deepStrictEqual(Object.keys(Object(properties)), ["__proto__", "toString"])
  })
})

describe("tools", () => {
  const tool = (input: Schema, more: object = {}) =>
    ({ type: "function", function: { name: "f", parameters: input, ...more } }) as const
  const fitOne = (input: ReturnType<typeof tool>, rules = openAi) => fitTools([input], rules, undefined)[0]?.function

  it("describe what their schema no longer says", () => {
    const anyOf = [{ required: ["a"] }, { required: ["b"] }]
    const input = { type: "object", properties: { a: text, b: text }, anyOf }
    const words = `The arguments must also match this JSON Schema: ${JSON.stringify({ anyOf })}`
    for (const [, rules] of wireRules) {
      assert.strictEqual(fitOne(tool(input, { description: "Finds." }), rules)?.description, `Finds.\n\n${words}`)
      assert.strictEqual(fitOne(tool(input), rules)?.description, words)
      assert.notProperty(fitOne(tool(input), rules)?.parameters, "anyOf")
    }
    const native = fitNativeTool({ name: "f", description: "Finds.", input_schema: input }, "input_schema", anthropic)
    assert.strictEqual(native.description, `Finds.\n\n${words}`)
    assert.deepStrictEqual<unknown>(native.input_schema, { type: "object", properties: input.properties })
  })

  it("have empty parameters where there are none, for hosts that want some", () => {
    const bare = { type: "function", function: { name: "f" } } as const
    assert.deepStrictEqual<unknown>(fitTools([bare], openAi, undefined)[0]?.function.parameters, {
      type: "object",
      properties: {}
    })
    const [input] = fitTools([bare], anthropic, undefined)
    assert.strictEqual(input, bare)
    const native = fitNativeTool({ type: "function", name: "f", parameters: null }, "parameters", openAi)
    assert.deepStrictEqual<unknown>(native.parameters, { type: "object", properties: {} })
  })

  it("are strict where the wire takes their schema so, and else not", () => {
    const optional = closed({ a: text, b: text }, ["a"])
    const strict = (input: Schema, rules = openAi) => fitOne(tool(input, { strict: true }), rules)?.strict
    assert.isTrue(strict(closed({ a: text })))
    assert.isTrue(strict(closed({ a: text }), anthropic))
    assert.isUndefined(strict(optional))
    assert.isTrue(strict(optional, anthropic))
    assert.isUndefined(strict({ type: "object", properties: { a: text }, required: ["a"] }))
    assert.isUndefined(strict({ type: "object", properties: { a: text }, required: ["a"] }, anthropic))
    assert.isUndefined(strict(closed({ a: text }), { ...openAi, strict: "none" }))
    assert.isFalse(fitOne(tool(optional, { strict: false }))?.strict)
  })
})

describe("what vendors do not read in a schema", () => {
  const list = { type: "array" }
  const sent = (parameters: Schema, rules = openAi): unknown =>
    fitTools([{ type: "function", function: { name: "f", parameters } }], rules, undefined)[0]?.function.parameters
  const of = (properties: Schema, more: Schema = {}) => ({ type: "object", properties, ...more })

  it("is an array of anything, for OpenAI", () => {
    const mended = { type: "array", items: {} }
    const input = of({ a: list, required: { anyOf: [list, text] }, c: { type: ["array", "null"], items: list } })
    const fitted = of({
      a: mended,
      required: { anyOf: [mended, text] },
      c: { type: ["array", "null"], items: mended }
    })
    assert.deepStrictEqual(sent(input), fitted)
    assert.strictEqual(sent(input, anthropic), input)
    assert.strictEqual(sent(input, { ...openAi, toolRoot: "any" }), input)
    const tuple = of({ a: { type: "array", prefixItems: [text] } })
    assert.strictEqual(sent(tuple), tuple)
    const native = { type: "function", name: "f", parameters: input }
    assert.deepStrictEqual(fitNativeTool(native, "parameters", openAi), { ...native, parameters: fitted })
    const values = of({ a: { enum: [{ type: "array" }], default: { required: null } } })
    assert.strictEqual(sent(values), values)
  })

  it.each([
    ["no list of what is required", of({ a: text }, { required: null }), of({ a: text })],
    ["false", of({ a: { ...text, required: false } }), of({ a: text })],
    [
      "a property that is required by itself",
      of({ a: { ...text, required: true }, b: text }, { required: ["b"] }),
      of({ a: text, b: text }, { required: ["b", "a"] })
    ],
    [
      "bounds that are exclusive",
      of({ a: { minimum: 1, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: false } }),
      of({ a: { exclusiveMinimum: 1, maximum: 2 } })
    ],
    [
      "such a schema within others",
      of({ a: { type: "array", items: of({ b: text }, { required: null }) } }, { $defs: { c: { required: null } } }),
      of({ a: { type: "array", items: of({ b: text }) } }, { $defs: { c: {} } })
    ]
  ])("are the words of earlier drafts: %s", (_, input, fitted) => {
    for (const [, rules] of wireRules) assert.deepStrictEqual(sent(input, rules), fitted)
  })
})

describe("strict schemas", () => {
  const takes = (vendor: "openai" | "anthropic", schema: Schema) => makeStrictBudget(vendor)(schema)

  it.each([
    ["nested objects", closed({ a: closed({ b: { type: "array", items: closed({ c: text }) } }) }), true, true],
    ["an open object within", closed({ a: { type: "object", properties: {} } }), false, false],
    ["an optional property within", closed({ a: closed({ b: text }, []) }), false, true],
    [
      "unions and null",
      closed({ a: { anyOf: [text, { type: "null" }] }, b: { type: ["string", "null"] } }),
      true,
      true
    ],
    ["an enum", closed({ a: { type: "string", enum: ["x", "y"] } }), true, true],
    ["bounds of numbers", closed({ a: count }), true, false],
    ["bounds of strings", closed({ a: { type: "string", maxLength: 2 } }), false, false],
    ["a default", closed({ a: { type: "string", default: "x" } }), false, true],
    ["a known format", closed({ a: { type: "string", format: "date-time" } }), true, true],
    ["the format uri", closed({ a: { type: "string", format: "uri" } }), false, true],
    ["oneOf", closed({ a: { oneOf: [text, count] } }), false, false],
    ["allOf", closed({ a: { allOf: [text] } }), false, true],
    ["patternProperties", { ...closed({}), patternProperties: {} }, false, false],
    ["anything at all", closed({ a: {} }), false, false],
    ["true", closed({ a: true }), false, false],
    ["a reference", { ...closed({ a: { $ref: "#/$defs/b" } }), $defs: { b: text } }, true, true],
    ["a reference to nothing", closed({ a: { $ref: "#/$defs/b" } }), false, false],
    ["recursion", closed({ a: { anyOf: [{ $ref: "#" }, { type: "null" }] } }), true, false],
    ["two items at least", closed({ a: { type: "array", items: text, minItems: 2 } }), true, false]
  ])("with %s", (_, schema, openai, claude) => {
    assert.deepStrictEqual([takes("openai", schema), takes("anthropic", schema)], [openai, claude])
  })

  it("are at most as deep and large as OpenAI takes them", () => {
    const nest = (levels: number): Schema => (levels === 0 ? closed({}) : closed({ a: nest(levels - 1) }))
    assert.deepStrictEqual([takes("openai", nest(5)), takes("openai", nest(11))], [true, false])
    const wide = (names: number) =>
      closed(Object.fromEntries(Array.from({ length: names }, (_, at) => [`p${at}`, text])))
    assert.deepStrictEqual([takes("openai", wide(5_000)), takes("openai", wide(5_001))], [true, false])
  })

  it("are none where their references go on for thousands", () => {
    const links = Array.from({ length: 4_000 }, (_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }])
    const schema = { ...closed({ a: { $ref: "#/$defs/d0" } }), $defs: { ...Object.fromEntries(links), d4000: text } }
    assert.deepStrictEqual([takes("openai", schema), takes("anthropic", schema)], [false, false])
    const short = { ...schema, $defs: { d0: { $ref: "#/$defs/d1" }, d1: { $ref: "#/$defs/d2" }, d2: text } }
    assert.deepStrictEqual([takes("openai", short), takes("anthropic", short)], [true, true])
  })

  it("of one request stay within Anthropic's limits", () => {
    const many = makeStrictBudget("anthropic")
    assert.strictEqual(Array.from({ length: 25 }, () => many(closed({ a: text }))).filter(Boolean).length, 20)
    const optional = makeStrictBudget("anthropic")
    const ten = closed(Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`p${at}`, text])), [])
    assert.deepStrictEqual(
      [optional(ten), optional(ten), optional(ten), optional(closed({ a: text }))],
      [true, true, false, true]
    )
    const unions = makeStrictBudget("anthropic")
    const nine = closed(
      Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`p${at}`, { type: ["string", "null"] }]))
    )
    assert.deepStrictEqual([unions(nine), unions(nine)], [true, false])
  })
})

describe("the schema of an answer", () => {
  const format = (schema: Schema, more: object = {}) =>
    ({ type: "json_schema", json_schema: { name: "n", schema, ...more } }) as const
  const union = { anyOf: [closed({ a: text }), closed({ b: text })] }

  it("has a root that the host takes, strict where it can be", () => {
    const lost = { anyOf: [{ required: ["a"] }, { required: ["b"] }] }
    assert.deepStrictEqual<unknown>(fitAnswerFormat(format(union, { strict: true, description: "D" }), openAi), {
      type: "json_schema",
      json_schema: {
        name: "n",
        description: `D\n\nThe answer must also match this JSON Schema: ${JSON.stringify(lost)}`,
        schema: { type: "object", properties: { a: text, b: text }, additionalProperties: false },
        strict: undefined
      }
    })
    const strict = format(closed({ a: text }), { strict: true })
    assert.strictEqual(fitAnswerFormat(strict, openAi), strict)
    const reference = { $ref: "#/$defs/a", $defs: { a: closed({ a: text }) } }
    const fitted = fitAnswerFormat(format(reference, { strict: true }), openAi)
    assert.isTrue(fitted.type === "json_schema" && fitted.json_schema.strict)
  })

  it("is declined by a wire of objects where it cannot be one", () => {
    for (const schema of [
      { type: "array", items: text },
      text,
      { enum: ["a"] },
      { const: 1 },
      { anyOf: [text, { type: "null" }] },
      { allOf: [text] },
      { $ref: "#/$defs/list", $defs: { list: { type: "array" } } },
      { anyOf: [{ $ref: "#/$defs/list" }, text], $defs: { list: { $ref: "#/$defs/rows" }, rows: { type: "array" } } }
    ]) {
      assert.deepStrictEqual(
        wireRules.map(([, rules]) => declinesFormat(format(schema), rules)),
        [true, true, false, false]
      )
      assert.isFalse(declinesFormat(format(schema), { ...openAi, answerRoot: "any" }))
    }
    for (const schema of [
      union,
      {},
      { type: ["object", "null"] },
      { $ref: "#/$defs/a" },
      { $ref: "#" },
      { allOf: [true] }
    ]) {
      assert.isFalse(declinesFormat(format(schema), openAi))
    }
    assert.isFalse(declinesFormat({ type: "json_object" }, openAi))
    assert.isFalse(declinesFormat(undefined, openAi))
  })
})
