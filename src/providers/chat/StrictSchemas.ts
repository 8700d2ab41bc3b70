import { Predicate } from "effect"
import { resolveLocal } from "../../domain/JsonSchema.ts"
import { asList, type Fields } from "../client/Json.ts"

/** What a vendor compiles to a grammar. */
interface StrictRules {
  readonly keywords: ReadonlySet<string>
  readonly formats: ReadonlySet<unknown>
  /** Whether each property has to be required. */
  readonly requiresAll: boolean
  readonly takesRecursion: boolean
  /** The maximum of an array's `minItems`; undefined: any. */
  readonly maxMinItems: number | undefined
  /** Limits of one schema. */
  readonly maxProperties: number
  readonly maxLevels: number
  readonly maxEnum: number
  /** Limits of all strict schemas of a request. */
  readonly maxSchemas: number
  readonly maxOptional: number
  readonly maxUnions: number
}

const common = [
  "$defs",
  "$ref",
  "$schema",
  "additionalProperties",
  "anyOf",
  "const",
  "definitions",
  "description",
  "enum",
  "items",
  "minItems",
  "pattern",
  "properties",
  "required",
  "title",
  "type"
]
const formats = ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"]
const unlimited = Number.POSITIVE_INFINITY

/** From the vendors' documents on structured outputs, November 2026. */
const rulesOf: Readonly<Record<"openai" | "anthropic", StrictRules>> = {
  openai: {
    keywords: new Set([
      ...common,
      "exclusiveMaximum",
      "exclusiveMinimum",
      "format",
      "maxItems",
      "maximum",
      "minimum",
      "multipleOf"
    ]),
    formats: new Set(formats),
    requiresAll: true,
    takesRecursion: true,
    maxMinItems: undefined,
    maxProperties: 5_000,
    maxLevels: 10,
    maxEnum: 1_000,
    maxSchemas: unlimited,
    maxOptional: unlimited,
    maxUnions: unlimited
  },
  anthropic: {
    keywords: new Set([...common, "allOf", "default", "format"]),
    formats: new Set([...formats, "uri"]),
    requiresAll: false,
    takesRecursion: false,
    maxMinItems: 1,
    maxProperties: unlimited,
    maxLevels: 100,
    maxEnum: unlimited,
    maxSchemas: 20,
    maxOptional: 24,
    maxUnions: 16
  }
}

/** A chain of references within one schema; no vendor's grammar goes so deep, and the check recurses. */
const maxOpen = 256

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null

class StrictSchema {
  optional = 0
  unions = 0
  #properties = 0
  #enum = 0
  readonly #root: Fields
  readonly #rules: StrictRules
  readonly #fitting = new Set<Fields>()
  readonly #open = new Set<Fields>()

  constructor(root: Fields, rules: StrictRules) {
    this.#root = root
    this.#rules = rules
  }

  #countsFit(schema: Fields): boolean {
    if (Array.isArray(schema.type) || Array.isArray(schema.anyOf)) this.unions += 1
    this.#enum += asList(schema.enum).length
    return this.#enum <= this.#rules.maxEnum && this.#properties <= this.#rules.maxProperties
  }

  #valuesFit({ enum: values, format, minItems, type }: Fields): boolean {
    const { formats, maxMinItems = unlimited } = this.#rules
    if (format !== undefined && !formats.has(format)) return false
    if (typeof minItems === "number" && minItems > maxMinItems) return false
    if (type === "array") return true
    return values === undefined || asList(values).every(isScalar)
  }

  #objectFits({ additionalProperties, properties, required, type }: Fields): boolean {
    const isObject = asList(Array.isArray(type) ? type : [type]).includes("object")
    if (!isObject && properties === undefined) return true
    if (!isObject || additionalProperties !== false || !Predicate.isRecord(properties)) return false
    const names = Object.keys(properties)
    const needed = new Set(asList(required))
    const optional = names.filter((name) => !needed.has(name)).length
    this.#properties += names.length
    this.optional += optional
    return optional === 0 || !this.#rules.requiresAll
  }

  #referenceFits(reference: unknown, levels: number): boolean {
    const target = resolveLocal(this.#root, reference)
    if (target === undefined || this.#open.size > maxOpen) return false
    if (this.#open.has(target)) return this.#rules.takesRecursion
    return this.fits(target, levels)
  }

  #membersFit(schema: Fields, levels: number): boolean {
    const { $ref, additionalProperties: _, items, properties } = schema
    const subschemas = [schema.$defs, schema.definitions, properties].flatMap((member) =>
      Predicate.isRecord(member) ? Object.values(member) : []
    )
    const parts = [...asList(schema.anyOf), ...asList(schema.allOf), ...(items === undefined ? [] : [items])]
    return (
      ($ref === undefined || this.#referenceFits($ref, levels)) &&
      subschemas.every((member) => this.fits(member, levels - 1)) &&
      parts.every((member) => this.fits(member, levels - 1))
    )
  }

  fits(schema: unknown, levels: number): boolean {
    if (!Predicate.isRecord(schema) || levels < 0) return false
    if (this.#fitting.has(schema)) return true
    if (!Object.keys(schema).every((name) => this.#rules.keywords.has(name))) return false
    const saysWhat = ["type", "anyOf", "allOf", "$ref", "enum", "const"].some((name) => Object.hasOwn(schema, name))
    if (!saysWhat || !this.#valuesFit(schema) || !this.#objectFits(schema) || !this.#countsFit(schema)) return false
    this.#open.add(schema)
    const isFitting = this.#membersFit(schema, levels)
    this.#open.delete(schema)
    if (isFitting) this.#fitting.add(schema)
    return isFitting
  }
}

/** Decides which schemas of one request are sent as strict: those that the vendor takes so, up to its limits. */
export const makeStrictBudget = (vendor: "openai" | "anthropic") => {
  const rules = rulesOf[vendor]
  let [schemas, optional, unions] = [0, 0, 0]
  return (schema: Fields): boolean => {
    if (schemas === rules.maxSchemas) return false
    const strict = new StrictSchema(schema, rules)
    if (!strict.fits(schema, rules.maxLevels)) return false
    if (optional + strict.optional > rules.maxOptional || unions + strict.unions > rules.maxUnions) return false
    schemas += 1
    optional += strict.optional
    unions += strict.unions
    return true
  }
}
