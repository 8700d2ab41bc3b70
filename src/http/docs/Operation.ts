import { Predicate, Schema } from "effect"
import { Envelope } from "../errors/ErrorMessages.ts"
import type { Document, JsonSchema, MediaType, Operation, Parameter, Response } from "./Document.ts"
import { codeBlock, type Html, html } from "./Html.ts"
import { inline, markdown } from "./Markdown.ts"
import { type FormField, languages, type SampleRequest, snippet } from "./Snippets.ts"

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
const fieldsOf = (schemas: Schemas) => {
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

export interface Endpoint {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const json = "application/json"
const isEnvelope = Schema.is(Envelope)

const isFile = ({ anyOf = [], format }: JsonSchema): boolean => format === "binary" || anyOf.some(isFile)

const formOf = (schema: JsonSchema, value: unknown): ReadonlyArray<FormField> =>
  Object.entries(Predicate.isRecord(value) ? value : {}).map(([name, sent]): FormField => {
    const field = schema.properties?.[name]
    const text = String(sent)
    return field !== undefined && isFile(field)
      ? { name, text: text.split("/").at(-1) ?? text, isFile: true }
      : { name, text, isFile: false }
  })

const answerOf = ({ responses }: Operation, body: unknown): SampleRequest["answer"] => {
  if (Object.entries(responses).every(([status, { content }]) => Number(status) >= 400 || content === undefined)) {
    return "file"
  }
  return Predicate.hasProperty(body, "stream") && body.stream === true ? "stream" : "json"
}

const snippets = (request: SampleRequest): ReadonlyArray<Html> =>
  languages.map((language) =>
    codeBlock(`Example in ${language}`, snippet[language](request), `sample ${language.toLowerCase()}`)
  )

const withTitle = (title: string, content: Html): Html => html`<h4>${title}</h4>${content}`

export const operationView = ({ components: { schemas }, servers: [{ url }] }: Document) => {
  const fields = fieldsOf(schemas)

  const parametersOf = (parameters: ReadonlyArray<Parameter>, place: Parameter["in"]): Html | undefined => {
    const those = parameters.filter((parameter) => parameter.in === place)
    if (those.length === 0) return undefined
    const list = those.map(({ name, required = false, schema }) => fields.field(name, schema, required))
    const title = { path: "Path", query: "Query", header: "Headers" }[place]
    return withTitle(title, html`<ul class="fields">${list}</ul>`)
  }

  const body = (type: string, { schema }: MediaType, isOnly: boolean): Html => {
    const content = fields.body(schema)
    return isOnly || type === json
      ? html`<p class="media">${type}</p>${content}`
      : html`<details><summary class="media">${type}</summary>${content}</details>`
  }

  const response = (status: string, { content = {}, description, headers = {} }: Response): Html => {
    const bodies = Object.entries(content).map(
      ([type, { schema }]) => html`<details><summary>${type}</summary>${fields.body(schema)}</details>`
    )
    const names = Object.entries(headers).map(
      ([name, header]) => html`<li><div><code class="name">${name}</code></div>${markdown(header.description)}</li>`
    )
    return html`<p><strong class="status">${status}</strong> ${inline(description)}</p>${bodies}
<details><summary>Headers</summary><ul class="fields">${names}</ul></details>`
  }

  const errorRows = (status: string, { content, description }: Response): Html => {
    const examples = Object.values(content?.[json]?.examples ?? {}).map(({ value }) => value)
    const errors = examples
      .filter(isEnvelope)
      .map(
        ({ error: { code, hint, message, type } }) =>
          html`<li><code>${code ?? type}</code> ${inline(message)}${hint && html` Hint: ${inline(hint)}`}</li>`
      )
    return html`<tr><th scope="row">${status}</th><td>${inline(description)}<ul>${errors}</ul></td></tr>`
  }

  const samples = ({ method, operation, path }: Endpoint): ReadonlyArray<Html> => {
    const { operationId, parameters, requestBody, responses } = operation
    const [shown] = Object.values(responses).flatMap(({ content }) => Object.values(content?.[json]?.examples ?? {}))
    const target = parameters.reduce((filled, { name, schema }) => {
      const example = schema.examples?.[0] ?? (Predicate.isRecord(shown?.value) ? shown.value[name] : undefined)
      return typeof example === "string" ? filled.replace(`{${name}}`, example) : filled
    }, `${url}${path}`)
    const hasIdempotencyKey = parameters.some(({ name }) => name === "idempotency-key")
    const request = (more: Partial<SampleRequest>, sent?: unknown): Html =>
      html`${snippets({
        method: method.toUpperCase(),
        url: target,
        json: undefined,
        form: [],
        hasIdempotencyKey,
        answer: answerOf(operation, sent),
        ...more
      })}`
    const asked = Object.entries(requestBody?.content ?? {}).flatMap(([type, { examples = {}, schema }]) =>
      Object.entries(examples).map(([name, { value }]) => ({
        name: type === json ? name : `${name}, as a form`,
        view: request(type === json ? { json: value } : { form: formOf(fields.resolve(schema), value) }, value)
      }))
    )
    const [first = { name: "", view: request({}) }, ...others] = asked
    const answers = Object.entries(responses).flatMap(([status, { content }]) =>
      Number(status) >= 400
        ? []
        : Object.values(content?.[json]?.examples ?? {}).map(({ value }) =>
            withTitle(`Answer ${status}`, codeBlock(`Answer of ${operationId}`, JSON.stringify(value, null, 2)))
          )
    )
    return [
      withTitle(first.name === "" ? "Request" : `Request: ${first.name}`, first.view),
      ...others.map(({ name, view }) => html`<details><summary>Request: ${name}</summary>${view}</details>`),
      ...answers
    ]
  }

  return (endpoint: Endpoint): Html => {
    const { method, operation, path } = endpoint
    const { description, operationId, parameters, requestBody, responses, summary } = operation
    const bodies = Object.entries(requestBody?.content ?? {})
    const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
    return html`<section class="operation" aria-labelledby="${operationId}">
<h3 id="${operationId}"><a href="#${operationId}">${summary}</a></h3>
<p class="endpoint"><span class="method ${method}">${method.toUpperCase()}</span> <code>${new URL(url).pathname}${path}</code></p>
<div class="columns"><div class="text">
${markdown(description)}
${parametersOf(parameters, "path")}${parametersOf(parameters, "query")}${parametersOf(parameters, "header")}
${bodies.length === 0 ? undefined : withTitle("Body", html`${bodies.map(([type, media]) => body(type, media, bodies.length === 1))}`)}
<h4>Answer</h4>
${Object.entries(responses).map(([status, one]) => (Number(status) < 400 ? response(status, one) : undefined))}
<details><summary>Errors: ${errors.map(([status]) => status).join(", ")}</summary>
<table><thead><tr><th scope="col">Status</th><th scope="col">Code and message</th></tr></thead>
<tbody>${errors.map(([status, one]) => errorRows(status, one))}</tbody></table></details>
</div><div class="samples">${samples(endpoint)}</div></div>
</section>`
  }
}
