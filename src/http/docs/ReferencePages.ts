import { Predicate, Schema } from "effect"
import { indent, pythonLiteral, scriptLiteral, shellQuote } from "../../domain/SourceText.ts"
import { Envelope } from "../errors/ErrorMessages.ts"
import { codeBlock, codeChoice, type Html, html, type Language, languages, textOf } from "./DocsPage.ts"
import type { Document, JsonSchema, MediaType, Operation, Parameter, Response } from "./Document.ts"
import { inline, markdown } from "./Markdown.ts"
import type { PageContent, SearchEntry } from "./Site.ts"

interface FormField {
  readonly name: string
  readonly text: string
  /** Whether `text` is the name of a file in the program's directory. */
  readonly isFile: boolean
}

interface SampleRequest {
  readonly method: string
  readonly url: string
  readonly json: unknown
  readonly form: ReadonlyArray<FormField>
  readonly hasIdempotencyKey: boolean
  readonly answer: "json" | "stream" | "file"
}

const curl = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const flags = { json: "", stream: " -N", file: " -L -o video.mp4" }[answer]
  const hasBody = json !== undefined || form.length > 0
  const verb = method === "GET" || (method === "POST" && hasBody) ? "" : ` -X ${method}`
  const content =
    json === undefined
      ? form.map(({ isFile, name, text }) => `-F ${shellQuote(`${name}=${isFile ? "@" : ""}${text}`)}`)
      : ["-H 'Content-Type: application/json'", `-d ${shellQuote(JSON.stringify(json, null, 2))}`]
  return [
    `curl${verb}${flags} ${url}`,
    '-H "Authorization: Bearer $GATEWAY_KEY"',
    ...(hasIdempotencyKey ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...content
  ].join(" \\\n  ")
}

const python = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const headers = [
    `"Authorization": f"Bearer {os.environ['GATEWAY_KEY']}"`,
    ...(hasIdempotencyKey ? ['"Idempotency-Key": str(uuid.uuid4())'] : [])
  ]
  const parts = form.map(({ isFile, name, text }) => {
    const value = JSON.stringify(text)
    return `        ${JSON.stringify(name)}: ${isFile ? `open(${value}, "rb")` : `(None, ${value})`},\n`
  })
  const content = [
    json === undefined ? "" : `    json=${indent(pythonLiteral(json), "    ")},\n`,
    form.length === 0 ? "" : `    files={\n${parts.join("")}    },\n`,
    answer === "stream" ? "    stream=True,\n" : ""
  ]
  const read = {
    json: "print(response.json())",
    stream: "for line in response.iter_lines(decode_unicode=True):\n    print(line)",
    file: 'with open("video.mp4", "wb") as file:\n    file.write(response.content)'
  }[answer]
  return `import os${hasIdempotencyKey ? "\nimport uuid" : ""}

import requests

response = requests.${method.toLowerCase()}(
    "${url}",
    headers={
        ${headers.join(",\n        ")},
    },
${content.join("")})
response.raise_for_status()
${read}`
}

const javaScript = ({ answer, form, hasIdempotencyKey, json, method, url }: SampleRequest): string => {
  const headers = [
    "Authorization: `Bearer ${process.env.GATEWAY_KEY}`",
    ...(json === undefined ? [] : ['"Content-Type": "application/json"']),
    ...(hasIdempotencyKey ? ['"Idempotency-Key": crypto.randomUUID()'] : [])
  ]
  const parts = form.map(({ isFile, name, text }) => {
    const value = JSON.stringify(text)
    return `form.set(${JSON.stringify(name)}, ${isFile ? `await openAsBlob(${value}), ${value}` : value})\n`
  })
  const prelude = [
    form.some(({ isFile }) => isFile) ? 'import { openAsBlob } from "node:fs"\n\n' : "",
    answer === "file" ? 'import { writeFile } from "node:fs/promises"\n\n' : "",
    form.length === 0 ? "" : `const form = new FormData()\n${parts.join("")}`
  ]
  const options = [
    ...(method === "GET" ? [] : [`method: "${method}"`]),
    `headers: {\n    ${headers.join(",\n    ")}\n  }`,
    ...(json === undefined ? [] : [`body: JSON.stringify(${indent(scriptLiteral(json), "  ")})`]),
    ...(form.length === 0 ? [] : ["body: form"])
  ]
  const read = {
    json: "console.log(await response.json())",
    stream:
      "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {\n  process.stdout.write(text)\n}",
    file: 'await writeFile("video.mp4", Buffer.from(await response.arrayBuffer()))'
  }[answer]
  return `${prelude.join("")}const response = await fetch("${url}", {
  ${options.join(",\n  ")}
})
if (!response.ok) throw new Error(await response.text())
${read}`
}

const snippet: Readonly<Record<Language, (request: SampleRequest) => string>> = {
  curl,
  Python: python,
  JavaScript: javaScript
}

type Schemas = Document["components"]["schemas"]

const deduplicate = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(values)]
const nameOf = ({ $ref }: JsonSchema): string | undefined => $ref?.split("/").at(-1)
const isNull = ({ type }: JsonSchema): boolean => type === "null"

/** Returns true for an unsupported field, which accepts only empty values. */
const isEmpty = ({ enum: values, maxItems, maxLength }: JsonSchema): boolean =>
  (maxLength === 0 && maxItems === 0) || (values?.length === 1 && values[0] === "")

const maxInlineValues = 8
/** Larger limits are not shown, because they only mean that a number fits into 64 bits. */
const maxExactInteger = 2 ** 53

const range = (unit: string, min: number | undefined, max: number | undefined): ReadonlyArray<string> => {
  if (max === undefined && (min === 0 || min === 1) && unit !== "") return min === 0 ? [] : ["not empty"]
  const minText = min !== undefined && min > -maxExactInteger ? min.toLocaleString("en-US") : undefined
  const maxText = max !== undefined && max < maxExactInteger ? max.toLocaleString("en-US") : undefined
  if (minText === undefined) return maxText === undefined ? [] : [`at most ${maxText}${unit}`]
  return [maxText === undefined ? `at least ${minText}${unit}` : `${minText} to ${maxText}${unit}`]
}

const limitsOf = (schema: JsonSchema): ReadonlyArray<string> => [
  ...range("", schema.minimum, schema.maximum),
  ...(schema.maxLength === undefined ? [] : range(" characters", schema.minLength, schema.maxLength)),
  ...range(" items", schema.minItems, schema.maxItems)
]

/** Renders schemas as lists of fields. The fields of a nested object are folded below its own field. */
const fieldsOf = (schemas: Schemas) => {
  const resolve = (schema: JsonSchema): JsonSchema => schemas[nameOf(schema) ?? ""] ?? schema

  /** Returns the alternatives of a schema. If it has a type, `anyOf` only limits the values and offers no alternatives. */
  const variants = (schema: JsonSchema): ReadonlyArray<JsonSchema> =>
    schema.anyOf === undefined || schema.type !== undefined ? [schema] : schema.anyOf.flatMap(variants)

  const labelVariant = (schema: JsonSchema): string => {
    const { enum: values, items, type } = schema
    if (schema.$ref !== undefined) return label(resolve(schema))
    if (isEmpty(schema)) return "empty"
    if (values?.length === 1) return JSON.stringify(values[0])
    if (type === "array" && items !== undefined) {
      const itemLabel = label(items)
      return itemLabel.includes(" | ") ? `(${itemLabel})[]` : `${itemLabel}[]`
    }
    if (typeof type === "object") return type.length > 5 ? "any" : type.join(" | ")
    return type ?? "any"
  }
  const label = (schema: JsonSchema): string => deduplicate(variants(schema).map(labelVariant)).join(" | ")

  const values = (schema: JsonSchema): Html | undefined => {
    const allowedValues = variants(schema)
      .flatMap((one) => (one.enum !== undefined && one.enum.length > 1 ? one.enum : []))
      .filter((value) => value !== null && value !== "")
    if (allowedValues.length === 0) return undefined
    const renderedValues = allowedValues.map((value) => html` <code>${String(value)}</code>`)
    return allowedValues.length <= maxInlineValues
      ? html`<p class="values">One of${renderedValues}</p>`
      : html`<details><summary>One of ${allowedValues.length} values</summary><p class="values">${renderedValues}</p></details>`
  }

  const titleOf = (schema: JsonSchema): string => {
    const literal = Object.entries(schema.properties ?? {}).find(([, property]) => property.enum?.length === 1)
    return literal === undefined ? "Fields" : `${literal[0]}: ${JSON.stringify(literal[1].enum?.[0])}`
  }

  const foldNested = (schema: JsonSchema, ancestors: ReadonlyArray<string>): ReadonlyArray<Html> =>
    variants(schema).flatMap((variant): ReadonlyArray<Html> => {
      const name = nameOf(variant)
      if (name !== undefined && ancestors.includes(name)) return []
      const innerAncestors = name === undefined ? ancestors : [...ancestors, name]
      const target = resolve(variant)
      if (target.items !== undefined) return foldNested(target.items, innerAncestors)
      if (target !== variant && target.anyOf !== undefined && target.type === undefined)
        return foldNested(target, innerAncestors)
      if (target.properties === undefined) return []
      return [html`<details><summary>${name ?? titleOf(target)}</summary>${list(target, innerAncestors)}</details>`]
    })

  const field = (name: string, schema: JsonSchema, isRequired: boolean, ancestors: ReadonlyArray<string>): Html => {
    const shownVariants = variants(schema).filter((one) => isRequired || !isNull(one))
    const type = deduplicate(shownVariants.map(labelVariant)).join(" | ")
    const limits = deduplicate(shownVariants.map(resolve).flatMap(limitsOf))
    const defaultValue = shownVariants.find((one) => one.default !== undefined)?.default
    return html`<li>
<div><code class="name">${name}</code> <span class="type">${type}</span>${isRequired ? html` <span class="required">required</span>` : undefined}</div>
${markdown(schema.description ?? resolve(schema).description)}
${values({ anyOf: shownVariants.map(resolve) })}
${limits.length === 0 || isEmpty(resolve(schema)) ? undefined : html`<p class="limits">${limits.join(", ")}</p>`}
${defaultValue === undefined ? undefined : html`<p class="limits">Default <code>${JSON.stringify(defaultValue)}</code></p>`}
${foldNested(schema, ancestors)}
</li>`
  }

  const list = ({ properties = {}, required = [] }: JsonSchema, ancestors: ReadonlyArray<string>): Html =>
    html`<ul class="fields">${Object.entries(properties).map(([name, schema]) =>
      field(name, schema, required.includes(name), ancestors)
    )}</ul>`

  return {
    resolve,
    field: (name: string, schema: JsonSchema, isRequired: boolean) => field(name, schema, isRequired, []),
    /** Renders the fields of an object, or the allowed values of any other schema. */
    body: (schema: JsonSchema): Html => {
      const name = nameOf(schema)
      const target = resolve(schema)
      if (target.properties !== undefined) return list(target, name === undefined ? [] : [name])
      return html`${markdown(target.description)}${foldNested(target, name === undefined ? [] : [name])}`
    }
  }
}

interface Endpoint {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const json = "application/json"
const isEnvelope = Schema.is(Envelope)

const isFile = ({ anyOf = [], format }: JsonSchema): boolean => format === "binary" || anyOf.some(isFile)

const formOf = (schema: JsonSchema, value: unknown): ReadonlyArray<FormField> =>
  Object.entries(Predicate.isRecord(value) ? value : {}).map(([name, exampleValue]): FormField => {
    const field = schema.properties?.[name]
    const text = String(exampleValue)
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

const snippets = (request: SampleRequest): Html =>
  codeChoice(languages.map((choice) => codeBlock({ label: choice, text: snippet[choice](request), choice })))

const withTitle = (title: string, content: Html): Html => html`<h4>${title}</h4>${content}`

const operationView = (
  { components: { schemas }, servers: [{ url }] }: Document,
  details: (endpoint: Endpoint) => string | undefined
) => {
  const fields = fieldsOf(schemas)

  const parametersOf = (parameters: ReadonlyArray<Parameter>, place: Parameter["in"]): Html | undefined => {
    const parametersInPlace = parameters.filter((parameter) => parameter.in === place)
    if (parametersInPlace.length === 0) return undefined
    const list = parametersInPlace.map(({ name, required = false, schema }) => fields.field(name, schema, required))
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
    const { parameters, requestBody, responses } = operation
    const [shown] = Object.values(responses).flatMap(({ content }) => Object.values(content?.[json]?.examples ?? {}))
    const target = parameters.reduce((filled, { name, schema }) => {
      const example = schema.examples?.[0] ?? (Predicate.isRecord(shown?.value) ? shown.value[name] : undefined)
      return typeof example === "string" ? filled.replace(`{${name}}`, example) : filled
    }, `${url}${path}`)
    const hasIdempotencyKey = parameters.some(({ name }) => name === "idempotency-key")
    const request = (detailsUrl: Partial<SampleRequest>, sent?: unknown): Html =>
      snippets({
        method: method.toUpperCase(),
        url: target,
        json: undefined,
        form: [],
        hasIdempotencyKey,
        answer: answerOf(operation, sent),
        ...detailsUrl
      })
    const requests = Object.entries(requestBody?.content ?? {}).flatMap(([type, { examples = {}, schema }]) =>
      Object.entries(examples).map(([name, { value }]) => ({
        name: type === json ? name : `${name}, as a form`,
        view: request(type === json ? { json: value } : { form: formOf(fields.resolve(schema), value) }, value)
      }))
    )
    const [first = { name: "", view: request({}) }, ...others] = requests
    const answers = Object.entries(responses).flatMap(([status, { content }]) =>
      Number(status) >= 400
        ? []
        : Object.values(content?.[json]?.examples ?? {}).map(({ value }) =>
            withTitle(`Response ${status}`, codeBlock({ label: "JSON", text: JSON.stringify(value, null, 2) }))
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
    const detailsUrl = details(endpoint)
    return html`<section class="operation" aria-labelledby="${operationId}">
<h3 id="${operationId}"><a href="#${operationId}">${summary}</a></h3>
<p class="endpoint"><span class="method ${method}">${method.toUpperCase()}</span> <code>${new URL(url).pathname}${path}</code></p>
<div class="columns"><div class="text">
${markdown(description)}
${detailsUrl === undefined ? undefined : html`<p><a href="${detailsUrl}">Rules and limits in detail</a></p>`}
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

const methods = ["post", "get", "delete"]

const endpointsOf = ({ paths }: Document): ReadonlyArray<Endpoint> =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .map(([method, operation]): Endpoint => ({ method, path, operation }))
      .toSorted((one, other) => methods.indexOf(one.method) - methods.indexOf(other.method))
  )

// This page replaces Scalar's, which has 3.5 MB and shows nothing without scripts or under the content security policy.
/** Renders the published OpenAPI document. `details` returns the address of the page that explains an endpoint. */
export const referenceContent = (
  document: Document,
  details: (endpoint: Endpoint) => string | undefined
): PageContent => {
  const { info, servers, tags } = document
  const [{ url }] = servers
  const renderOperation = operationView(document, details)
  const endpoints = endpointsOf(document)
  const tagGroups = tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter(({ operation }) => operation.tags.includes(tag.name))
  }))
  return {
    sections: tagGroups.map((group) => ({
      anchor: group.name,
      title: group.name,
      parts: group.endpoints.map(({ operation: { operationId, summary } }) => ({ anchor: operationId, title: summary }))
    })),
    content: html`<h1>API reference <small>${info.version}</small></h1>
${markdown(info.description)}
<p>Programs can read all of this from <a href="${url}/openapi.json">openapi.json</a>.</p>
${tagGroups.map(
  (group): Html =>
    html`<h2 id="${group.name}">${group.name}</h2>${markdown(group.description)}${group.endpoints.map(renderOperation)}`
)}`
  }
}

/** Returns an operation's searchable text: its description, and the names and descriptions of its parameters and fields. */
const wordsOf = ({ description, parameters, requestBody }: Operation, schemas: Document["components"]["schemas"]) => {
  const bodies = Object.values(requestBody?.content ?? {}).map(
    ({ schema }) => schemas[schema.$ref?.split("/").at(-1) ?? ""] ?? schema
  )
  const fields = bodies.flatMap(({ properties = {} }) =>
    Object.entries(properties).map(([name, field]) => `${name} ${field.description ?? ""}`)
  )
  const parameterTexts = parameters.map((parameter) => `${parameter.name} ${parameter.description ?? ""}`)
  return [textOf(markdown(description)), ...new Set([...parameterTexts, ...fields])].join(" ").replaceAll("`", "")
}

/** Returns the search entries of all operations, which are found by name, path and fields. */
export const referenceEntries = (document: Document, page: string, url: string): ReadonlyArray<SearchEntry> =>
  endpointsOf(document).map(({ method, operation, path }) => ({
    page,
    section: operation.summary,
    url: `${url}#${operation.operationId}`,
    text: `${method.toUpperCase()} /v1${path} ${wordsOf(operation, document.components.schemas)}`
  }))
