import { FastCheck as fc } from "effect"

const iso = /^\d{4}-\d{2}-\d{2}$/
/** The formats that are checked, by looks. */
export const formats: Record<string, (text: string) => boolean> = {
  date: (text) => iso.test(text) && !Number.isNaN(Date.parse(text)),
  "date-time": (text) => /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  email: (text) => /^[^@\s]+@[^@\s]+\.[a-z]+$/.test(text),
  uri: (text) => URL.canParse(text),
  uuid: (text) => /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text),
  ipv4: (text) => /^(\d{1,3}\.){3}\d{1,3}$/.test(text)
}

/** An object's schema, all of whose properties are required unless some are named. */
export const object = (properties: object, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required
})

const text = fc.record(
  {
    minLength: fc.integer({ min: 0, max: 12 }),
    maxLength: fc.integer({ min: 12, max: 40 }),
    description: fc.string()
  },
  { requiredKeys: [] }
)
const scalar: fc.Arbitrary<object> = fc.oneof(
  text.map((limits) => ({ type: "string", ...limits })),
  fc.constantFrom(...Object.keys(formats)).map((format) => ({ type: "string", format })),
  fc.constantFrom({ type: "boolean" }, { type: "null" }, { type: ["string", "null"] }, { type: ["integer", "string"] }),
  fc.tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 10, max: 90 })).map(([minimum, span]) => ({
    type: "integer",
    minimum,
    maximum: minimum + span
  })),
  fc
    .tuple(fc.double({ min: -50, max: 50, noNaN: true }), fc.double({ min: 0.5, max: 9, noNaN: true }))
    .map(([low, span]) => ({ type: "number", exclusiveMinimum: low, exclusiveMaximum: low + span })),
  fc.constantFrom(0.01, 0.1, 0.25, 3, 7).map((multipleOf) => ({ type: "number", multipleOf, minimum: 1.1 })),
  fc
    .uniqueArray(fc.oneof(fc.string(), fc.integer(), fc.constant(null)), { minLength: 1, maxLength: 5 })
    .map((choices) => ({
      enum: choices
    })),
  fc.jsonValue({ maxDepth: 2 }).map((value) => ({ const: value }))
)

const key = fc.oneof(
  fc.constantFrom("a", "b", "city", "constructor", "isPrototypeOf", "a/b~c"),
  fc.string({ maxLength: 6 })
)

/** Schemas that can be satisfied. */
export const { schema } = fc.letrec<{ schema: object }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    fc
      .tuple(fc.array(fc.tuple(key, tie("schema")), { maxLength: 4 }), fc.infiniteStream(fc.boolean()), fc.boolean())
      .map(([entries, coins, open]) => {
        const properties = Object.fromEntries(entries)
        const required = Object.keys(properties).filter(() => coins.next().value)
        return { type: "object", properties, required, ...(open ? {} : { additionalProperties: false }) }
      }),
    fc.tuple(tie("schema"), fc.integer({ min: 0, max: 3 })).map(([items, minItems]) => ({
      type: "array",
      items,
      minItems,
      maxItems: minItems + 1
    })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((prefixItems) => ({
      type: "array",
      prefixItems,
      minItems: prefixItems.length,
      items: false
    })),
    fc.array(tie("schema"), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.tuple(tie("schema"), text).map(([one]) => ({ allOf: [one, { description: "both" }] })),
    tie("schema").map((one) => ({ oneOf: [one, { const: "surely not another" }] })),
    tie("schema").map((one) => ({ $defs: { one }, title: "indirect", allOf: [one] }))
  )
}))
