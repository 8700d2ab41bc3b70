import fc from "fast-check"
import { fitName, fitNames, matchesRule, replaceId } from "../../../src/providers/chat/ToolNames.ts"
import type { NameRule } from "../../../src/providers/chat/WireRules.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { wireRules } from "./Wires.ts"

const shortNames: NameRule = { characters: "a-zA-Z0-9_", first: "a-z_", minLength: 1, maxLength: 32 }
const namesOf: ReadonlyArray<readonly [string, NameRule]> = [
  ...wireRules.map(([wire, { toolName }]) => [wire, toolName] as const),
  ["a host of short names", shortNames]
]

const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 200 }),
  fc.string({ unit: fc.constantFrom("a", "Z", "_", "-", "2", ".", " ", "é", "\ud83d"), minLength: 1, maxLength: 200 }),
  fc.constantFrom("get_weather", "get weather", "get.weather", "get_weather_", "2fa_status", "-dash", "web_search")
)

describe.each(namesOf)("names of tools on %s", (_, rule) => {
  it("fit, are different for different names, and leave those that fit", () => {
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), (names) => {
        const fitted = fitNames(names, rule)
        const sent = names.map((input) => fitted?.get(input) ?? input)
        assert.isTrue(sent.every((input) => matchesRule(input, rule)))
        assert.strictEqual(new Set(sent).size, names.length)
        for (const input of names) assert.strictEqual(fitted?.has(input) ?? false, !matchesRule(input, rule))
      })
    )
  })

  it("are the same in every request, whatever stands beside them", () => {
    fc.assert(
      fc.property(name, fc.uniqueArray(name, { maxLength: 5 }), (input, others) => {
        const alone = fitName(input, rule)
        const fitted = fitNames([...others, input], rule)
        const reversed = fitNames([input, ...others.toReversed()], rule)
        assert.strictEqual(fitted?.get(input) ?? input, alone)
        assert.strictEqual(reversed?.get(input) ?? input, alone)
      })
    )
  })

  it("avoid a name that another tool has already", () => {
    const refused = "get weather"
    const taken = fitName(refused, rule)
    const fitted = fitNames([refused, taken], rule)
    assert.notStrictEqual(fitted?.get(refused), taken)
    assert.isTrue(matchesRule(fitted?.get(refused) ?? "", rule))
    assert.isUndefined(fitted?.get(taken))
    assert.deepStrictEqual(fitNames([taken, refused], rule), fitted)
  })

  it("avoid the name of the host's own search", () => {
    const fitted = fitNames(["web_search", "other"], rule, "web_search")
    assert.deepStrictEqual([...(fitted?.keys() ?? [])], ["web_search"])
    assert.match(fitted?.get("web_search") ?? "", /^web_search_[a-zA-Z0-9]{10}$/)
  })
})

describe("the rules of names", () => {
  it.each([
    ["openai-chat", "a".repeat(64), true],
    ["openai-chat", "a".repeat(65), false],
    ["openai-chat", "2fa_status", true],
    ["openai-chat", "default_api:get", false],
    ["openai-responses", "a".repeat(65), false],
    ["anthropic", "a".repeat(128), true],
    ["anthropic", "a".repeat(129), false],
    ["anthropic", "get weather", false],
    ["gemini", "2fa_status", false],
    ["gemini", "-dash", false],
    ["gemini", "_dash-2", true],
    ["gemini", "a".repeat(65), false]
  ])("of %s: %s fits: %s", (wire, input, fits) => {
    const [, rules] = wireRules.find(([name]) => name === wire) ?? []
    assert.strictEqual(rules && matchesRule(input, rules.toolName), fits)
  })

  it("keep what can be read of a name", () => {
    const [, { toolName }] = wireRules[0]
    assert.match(fitName("default_api:get weather", toolName), /^default_api_get_weather_[a-zA-Z0-9]{10}$/)
  })
})

describe("ids of calls", () => {
  it.each([9, 24, 40])("of exactly %i letters and digits are as many, and one for each id", (length) => {
    const rule = { characters: "a-zA-Z0-9", minLength: length, maxLength: length }
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (id) => {
        const replaced = replaceId(id, rule)
        assert.match(replaced, new RegExp(`^[a-zA-Z0-9]{${length}}$`))
        assert.strictEqual(replaceId(id, rule), replaced)
        assert.notStrictEqual(replaceId(`${id}x`, rule), replaced)
        assert.notStrictEqual(replaceId(id, rule, 1), replaced)
      })
    )
  })
})
