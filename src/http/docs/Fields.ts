import type { Document, JsonSchema } from "./Document.ts"
import { type Html, html } from "./Html.ts"
import { markdown } from "./Markdown.ts"

type Schemas = Document["components"]["schemas"]

const unique = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(values)]
const nameOf = ({ $ref }: JsonSchema): string | undefined => $ref?.split("/").at(-1)
const isNull = ({ type }: JsonSchema): boolean => type === "null"

/** Only empty values are accepted: a field that is not supported. */
const isEmpty = ({ enum: values, maxItems, maxLength }: JsonSchema): boolean =>
  (maxLength === 0 && maxItems === 0) || (values?.length === 1 && values[0] === "")

const shownValues = 8
/** Larger ones only say that a number fits into 64 bits. */
const largestShown = 2 ** 53

const range = (unit: string, least: number | undefined, most: number | undefined): ReadonlyArray<string> => {
  if (most === undefined && (least === 0 || least === 1) && unit !== "") return least === 0 ? [] : ["not empty"]
  const low = least !== undefined && least > -largestShown ? least.toLocaleString("en-US") : undefined
  const high = most !== undefined && most < largestShown ? most.toLocaleString("en-US") : undefined
  if (low === undefined) return high === undefined ? [] : [`at most ${high}${unit}`]
  return [high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`]
}

const limitsOf = (schema: JsonSchema): ReadonlyArray<string> => [
  ...range("", schema.minimum, schema.maximum),
  ...(schema.maxLength === undefined ? [] : range(" characters", schema.minLength, schema.maxLength)),
  ...range(" items", schema.minItems, schema.maxItems)
]

/** Shows schemas as lists of fields, with those of nested objects folded below. */
export const fieldsOf = (schemas: Schemas) => {
  const resolve = (schema: JsonSchema): JsonSchema => schemas[nameOf(schema) ?? ""] ?? schema

  /** Beside a type `anyOf` only limits the values. */
  const variants = (schema: JsonSchema): ReadonlyArray<JsonSchema> =>
    schema.anyOf === undefined || schema.type !== undefined ? [schema] : schema.anyOf.flatMap(variants)

  const labelOne = (schema: JsonSchema): string => {
    const { enum: values, items, type } = schema
    if (schema.$ref !== undefined) return label(resolve(schema))
    if (isEmpty(schema)) return "empty"
    if (values?.length === 1) return JSON.stringify(values[0])
    if (type === "array" && items !== undefined) {
      const inner = label(items)
      return inner.includes(" | ") ? `(${inner})[]` : `${inner}[]`
    }
    if (typeof type === "object") return type.length > 5 ? "any" : type.join(" | ")
    return type ?? "any"
  }
  const label = (schema: JsonSchema): string => unique(variants(schema).map(labelOne)).join(" | ")

  const values = (schema: JsonSchema): Html | undefined => {
    const all = variants(schema)
      .flatMap((one) => (one.enum !== undefined && one.enum.length > 1 ? one.enum : []))
      .filter((value) => value !== null && value !== "")
    if (all.length === 0) return undefined
    const shown = all.map((value) => html` <code>${String(value)}</code>`)
    return all.length <= shownValues
      ? html`<p class="values">One of${shown}</p>`
      : html`<details><summary>One of ${all.length} values</summary><p class="values">${shown}</p></details>`
  }

  const titleOf = (schema: JsonSchema): string => {
    const literal = Object.entries(schema.properties ?? {}).find(([, property]) => property.enum?.length === 1)
    return literal === undefined ? "Fields" : `${literal[0]}: ${JSON.stringify(literal[1].enum?.[0])}`
  }

  const foldNested = (schema: JsonSchema, above: ReadonlyArray<string>): ReadonlyArray<Html> =>
    variants(schema).flatMap((variant): ReadonlyArray<Html> => {
      const name = nameOf(variant)
      if (name !== undefined && above.includes(name)) return []
      const within = name === undefined ? above : [...above, name]
      const target = resolve(variant)
      if (target.items !== undefined) return foldNested(target.items, within)
      if (target !== variant && target.anyOf !== undefined && target.type === undefined)
        return foldNested(target, within)
      if (target.properties === undefined) return []
      return [html`<details><summary>${name ?? titleOf(target)}</summary>${list(target, within)}</details>`]
    })

  const field = (name: string, schema: JsonSchema, isRequired: boolean, above: ReadonlyArray<string>): Html => {
    const present = variants(schema).filter((one) => isRequired || !isNull(one))
    const type = unique(present.map(labelOne)).join(" | ")
    const limits = unique(present.map(resolve).flatMap(limitsOf))
    const fallback = present.find((one) => one.default !== undefined)?.default
    return html`<li>
<div><code class="name">${name}</code> <span class="type">${type}</span>${isRequired ? html` <span class="required">required</span>` : undefined}</div>
${markdown(schema.description ?? resolve(schema).description)}
${values({ anyOf: present.map(resolve) })}
${limits.length === 0 || isEmpty(resolve(schema)) ? undefined : html`<p class="limits">${limits.join(", ")}</p>`}
${fallback === undefined ? undefined : html`<p class="limits">Default <code>${JSON.stringify(fallback)}</code></p>`}
${foldNested(schema, above)}
</li>`
  }

  const list = ({ properties = {}, required = [] }: JsonSchema, above: ReadonlyArray<string>): Html =>
    html`<ul class="fields">${Object.entries(properties).map(([name, schema]) =>
      field(name, schema, required.includes(name), above)
    )}</ul>`

  return {
    resolve,
    field: (name: string, schema: JsonSchema, isRequired: boolean) => field(name, schema, isRequired, []),
    /** Lists the fields of an object, or else the allowed values. */
    body: (schema: JsonSchema): Html => {
      const name = nameOf(schema)
      const target = resolve(schema)
      if (target.properties !== undefined) return list(target, name === undefined ? [] : [name])
      return html`${markdown(target.description)}${foldNested(target, name === undefined ? [] : [name])}`
    }
  }
}
