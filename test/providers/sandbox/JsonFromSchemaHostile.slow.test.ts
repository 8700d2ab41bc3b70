import type { ChatRequest, Tool } from "../../../src/domain/Chat.ts"
import { jsonFromSchema } from "../../../src/providers/sandbox/JsonFromSchema.ts"
import { scriptFor } from "../../../src/providers/sandbox/SandboxChat.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { object } from "./JsonSchemas.ts"
import { request, tool } from "./Sandbox.ts"

/** The limit in milliseconds of CPU time. The work takes at most about 20 ms; the rest allows for cold code and load. */
const longest = 500

const wide = <A>(width: number, make: (at: number) => A): Array<A> => Array.from({ length: width }, (_, at) => make(at))
const names = (width: number) => wide(width, (at) => `name${at}`)
const named = (width: number, value: unknown = { type: "string" }) =>
  Object.fromEntries(names(width).map((name) => [name, value]))
const nested = (depth: number, wrap: (inner: unknown) => object, innermost: unknown): object => {
  let value = wrap(innermost)
  for (let level = 1; level < depth; level++) value = wrap(value)
  return value
}
const impossible = { type: "integer", maximum: 0, minimum: 1 }
const list = (items: unknown, more: object = {}) => ({ type: "array", items, minItems: 1e9, ...more })
const repeated = (times: number, definition: object) => ({
  allOf: wide(times, () => ({ $ref: "#/$defs/it" })),
  $defs: { it: definition }
})

const patterns: Record<string, () => object> = {
  "a pattern that hangs": () => ({
    type: "string",
    pattern: "^(a+)+$",
    default: `${"a".repeat(5_000)}!`,
    not: { pattern: "(((a*)*)*)*b" },
    minLength: 5000
  }),
  "a pattern with a huge repeat": () => ({ type: "string", pattern: "^((a{1000000}){1000000}b?){1000000}$" }),
  "a pattern of rare characters": () =>
    list({ type: "string", pattern: `${"[^\\p{L}\\p{N}\\p{P}\\p{S}\\p{Z}\\u0000-\\u2fff]".repeat(10)}{900}` }),
  "no pattern at all": () => ({ type: "string", pattern: "([" }),
  "a long pattern": () => ({ type: "string", pattern: "(".repeat(500_000) + ")".repeat(500_000) }),
  "a pattern for names that hangs": () => ({
    ...object(named(100), names(100)),
    patternProperties: { "^(a+)+$": {}, "^(name|na|me|\\d)*!$": { type: "integer" } },
    propertyNames: { pattern: "^(n|na|nam|name\\d*)*!$" },
    minProperties: 1_000
  }),
  "many patterns for names": () => ({
    type: "object",
    minProperties: 100,
    patternProperties: Object.fromEntries(wide(2_000, (at) => [`^(a*)*b{${at}}$`, { type: "string" }]))
  })
}

const references: Record<string, () => object> = {
  "a loop of references": () => ({
    $ref: "#",
    allOf: [{ $ref: "#" }],
    anyOf: [{ $ref: "#" }, { $ref: "#" }],
    not: { $ref: "#" }
  }),
  "a reference to itself": () => ({ $ref: "#" }),
  "a chain without an end": () => object({ next: { $ref: "#" } }),
  "a recursion without an end": () => object({ a: { $ref: "#" }, b: { $ref: "#" }, c: list({ $ref: "#" }) }),
  "a recursion of unique items": () => object({ a: list({ $ref: "#" }, { uniqueItems: true }), b: { $ref: "#" } }),
  "a recursion with long names": () =>
    object({ ["k".repeat(50_000)]: { $ref: "#" }, ["l".repeat(50_000)]: { $ref: "#" } }),
  "cycles through many definitions": () => {
    const to = (at: number) => ({ $ref: `#/$defs/name${at % 200}` })
    return {
      ...to(0),
      $defs: Object.fromEntries(wide(200, (at) => [`name${at}`, object({ a: to(at + 1), b: to(at * 7) })]))
    }
  },
  "long pointers": () => ({ allOf: wide(1_000, () => ({ $ref: `#${"/a".repeat(450)}` })) }),
  "huge pointers": () => ({ allOf: wide(100, () => ({ $ref: `#${"/a".repeat(100_000)}` })) }),
  "lost references": () =>
    object({
      a: { $ref: "#/nowhere/%E0%A4%A" },
      b: { $ref: "https://example.test/schema" },
      c: { $ref: "#/properties/c" }
    })
}

const counts: Record<string, () => object> = {
  "a billion items": () => list(list({})),
  "a billion unique booleans": () => list({ type: "boolean" }, { uniqueItems: true }),
  "a billion texts of a billion characters": () => list({ type: "string", minLength: 1e9 }, { uniqueItems: true }),
  "a billion characters that are refused": () => list({ type: "string", minLength: 1e9, not: { minLength: 1 } }),
  "a billion properties": () => ({ type: "object", minProperties: 1e9 }),
  "a billion held items": () => list({}, { contains: { type: "integer" }, minContains: 1e9 }),
  "tiny steps": () => list({ type: "number", multipleOf: 1e-300, minimum: 1, maximum: 2 }),
  "tiny whole steps": () => ({ type: "integer", multipleOf: 1e-300, minimum: 1e300 }),
  "many steps": () => list({ type: "number", allOf: wide(200, (at) => ({ multipleOf: 1 + 1 / (at + 2) })) }),
  "wrong numbers": () => ({ ...impossible, multipleOf: 0, minimum: Number.MAX_VALUE, exclusiveMaximum: -1 }),
  "a length checked many times": () => ({ ...repeated(200, { minLength: 1, maxLength: 20_000 }), minLength: 16_000 }),
  "impossible limits": () => object({ a: impossible, b: { type: "string", minLength: 4, maxLength: 2 } })
}

const branches: Record<string, () => object> = {
  "branches without a way": () => nested(60, (inner) => ({ anyOf: [inner, inner] }), false),
  "branches of all kinds": () =>
    nested(90, (inner) => ({ anyOf: [inner, inner], oneOf: [inner, inner], allOf: [inner] }), impossible),
  "branches as deep as no client sends them": () =>
    nested(2_000, (inner) => ({ anyOf: [inner, inner], allOf: [inner] }), impossible),
  "many branches": () => ({ anyOf: wide(50_000, () => false), allOf: wide(50_000, () => ({ type: "string" })) }),
  "nested conjunctions": () => ({
    allOf: wide(1_000, () => ({ allOf: wide(100, () => ({ allOf: wide(10, () => ({ required: ["a"] })) })) }))
  }),
  "a conjunction of choices": () => ({ allOf: wide(30, (at) => ({ anyOf: [{ const: at }, { const: at + 1 }] })) }),
  "a conjunction of large objects": () => repeated(200, object(named(1_000))),
  negations: () => nested(90, (inner) => ({ not: { anyOf: [inner, inner] } }), {}),
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  conditions: () => nested(90, (inner) => ({ if: inner, then: inner, else: inner }), impossible),
  "branches for each property": () => object(named(1_000, { anyOf: wide(1_000, () => impossible) })),
  "impossible types": () =>
    object({ a: { allOf: [{ type: "string" }, { type: "integer" }] }, b: false, c: { enum: [] } }),
  "many types": () => repeated(200, { type: wide(10_000, () => "string") }),
  "formats of the wrong kind": () =>
    object({
      a: { type: "string", format: { toString: 1 } },
      b: { type: "string", format: nested(20_000, (inner) => [inner], 1) }
    }),
  "keywords of the wrong kind": () => ({
    type: 5,
    properties: [],
    required: "a",
    enum: {},
    allOf: 3,
    $ref: 4,
    items: "x",
    minLength: "2"
  })
}

const sizes: Record<string, () => object> = {
  "a million choices": () => list({ enum: wide(1e6, String) }),
  "choices like the prompt": () => list({ enum: wide(900, (at) => "a".repeat(33) + at) }),
  "long choices that are alike": () => repeated(200, { enum: wide(200, (at) => "a".repeat(60_000) + at) }),
  "choices of objects": () => repeated(200, { enum: wide(1_000, (at) => ({ ...named(20, 1), last: at })) }),
  "deep choices": () => list({ enum: wide(1_000, (at) => nested(50, (inner) => [inner], at)) }, { uniqueItems: true }),
  "a deep constant": () => ({ const: nested(20_000, (inner) => [inner], 1) }),
  "a wide constant": () => list({ const: named(50_000, 1) }),
  "long constants": () => list({ const: "x".repeat(200_000) }),
  "long defaults": () => object(named(500, { type: "string", default: "y".repeat(20_000), maxLength: 5 })),
  "many properties": () => object(named(50_000)),
  "many required names": () => nested(50, (inner) => object(named(1_000, inner), names(1_000)), {}),
  "a million required names": () => ({ type: "object", required: names(1e6) }),
  "many dependents": () => ({
    ...object(named(500)),
    dependentRequired: named(500, names(500)),
    dependentSchemas: named(500, { required: names(500) })
  }),
  "many places": () => ({ type: "array", prefixItems: wide(100_000, () => list({ type: "integer" })) })
}

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

const cpuMillis = () => {
  const { system, user } = process.cpuUsage()
  return (user + system) / 1_000
}

/** Garbage collection may slow down a run, but not all of them. */
const timed = <A>(run: () => A, runs = 6): A => {
  const start = cpuMillis()
  const value = run()
  const took = cpuMillis() - start
  if (took > longest && runs > 1) return timed(run, runs - 1)
  assert.isAtMost(took, longest)
  return value
}

describe("a hostile schema", () => {
  const hostile = { ...patterns, ...references, ...counts, ...branches, ...sizes }
  for (const [name, make] of Object.entries(hostile)) {
    it(`is filled in bounded time and size: ${name}`, () => {
      const schema = make()
      const prompts = ["a prompt with some words", "a".repeat(1e6), "1 2 3 ".repeat(2e5), '"Aa '.repeat(2e5)]
      const values = prompts.map((prompt) => timed(() => jsonFromSchema(schema, prompt)))
      for (const value of values) {
        assert.isAtMost(JSON.stringify(value).length, 200_000)
        assert.isAtMost(depthOf(value), 100)
      }
      assert.deepStrictEqual(jsonFromSchema(schema, prompts[0] ?? ""), values[0])
    })
  }

  it("does not starve the properties beside it", () => {
    const huge = list({ type: "string", minLength: 1e9 })
    const value = jsonFromSchema(object({ huge, whole: { type: "integer" }, unit: { enum: ["m", "km"] } }), "")
    assert.hasAllKeys(value, ["huge", "whole", "unit"])
    assert.include(value, { whole: 0, unit: "m" })
  })
})

describe("a hostile request", () => {
  const script = (overrides: Partial<ChatRequest>) => timed(() => scriptFor(request(overrides)))
  const user = (content: string) => [{ role: "user", content }] as const

  it("has its schemas filled within one bound for all of them", () => {
    const tools: ReadonlyArray<Tool> = wide(1_000, (at) =>
      tool(`tool${at}`, { ...references["cycles through many definitions"]?.() })
    )
    const { toolCalls } = script({ tools, messages: user("Use tool1, tool2, tool3, tool4 and tool5.") })
    assert.deepStrictEqual(
      toolCalls.map((call) => call.function.name),
      ["tool1", "tool2", "tool3", "tool4"]
    )
    assert.isAtMost(
      toolCalls.reduce((sum, call) => sum + call.function.arguments.length, 0),
      200_000
    )
  })

  it("may list a hundred thousand tools", () => {
    const tools = wide(100_000, (at) => tool(`tool${at}`, {}))
    const { toolCalls } = script({ tools, messages: user("tool0 ".repeat(1e6)) })
    assert.deepStrictEqual(
      toolCalls.map((call) => call.function.name),
      ["tool0"]
    )
  })

  it("may end with ten thousand results", () => {
    const calls = wide(
      10_000,
      (at) => ({ id: `c${at}`, type: "function", function: { name: "f", arguments: "{}" } }) as const
    )
    const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "done" }) as const)
    const messages = [...user("Go."), { role: "assistant", content: null, tool_calls: calls } as const, ...results]
    assert.include(script({ messages }).content, "9999 further results")
  })

  it("may have a response format that cannot be satisfied", () => {
    const schema = object({ a: list(impossible), b: impossible, c: { type: "string" } })
    const { content } = script({ responseFormat: { type: "json_schema", json_schema: { name: "no", schema } } })
    assert.hasAllKeys(JSON.parse(content ?? ""), ["a", "b", "c"])
  })
})
