import { Predicate, Schema } from "effect"
import { Envelope } from "../errors/ErrorMessages.ts"
import type { Document, JsonSchema, MediaType, Operation, Parameter, Response } from "./Document.ts"
import { fieldsOf } from "./Fields.ts"
import { codeBlock, type Html, html } from "./Html.ts"
import { inline, markdown } from "./Markdown.ts"
import { type FormField, languages, type SampleRequest, snippet } from "./Snippets.ts"

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
