import { decodeDocument } from "./Document.ts"
import { Html, html, script, siteAt, siteBar } from "./Html.ts"
import { markdown } from "./Markdown.ts"
import { type Endpoint, operationView } from "./Operation.ts"
import { makePage, type Page } from "./Page.ts"
import { languages } from "./Snippets.ts"
import { reference } from "./Style.ts"

const methods = ["post", "get", "delete"]

// By hand: Scalar's page has 3.5 MB, and shows nothing without scripts or under the policy of our pages.
/** Shows the published OpenAPI document. */
export const referencePage = (published: unknown, publicUrl: string): Page => {
  const document = decodeDocument(published)
  const { info, paths, servers, tags } = document
  const [{ url }] = servers
  const view = operationView(document)
  const endpoints = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .map(([method, operation]): Endpoint => ({ method, path, operation }))
      .toSorted((one, other) => methods.indexOf(one.method) - methods.indexOf(other.method))
  )
  const grouped = tags.map((tag) => ({
    ...tag,
    endpoints: endpoints.filter(({ operation }) => operation.tags.includes(tag.name))
  }))

  const menu = grouped.map(
    (group): Html => html`<h2>${group.name}</h2>
<ul>${group.endpoints.map(({ operation }) => html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`)}</ul>`
  )
  const choices = languages.map((language, at) => {
    const id = language.toLowerCase()
    const checked = at === 0 ? new Html(" checked") : undefined
    return html`<label><input type="radio" name="language" id="${id}" value="${id}"${checked}> ${language}</label>`
  })
  const body = html`${siteBar(info.title, siteAt(publicUrl))}
<div class="choices"><fieldset><legend>Language of the examples</legend>${choices}</fieldset></div>
<div class="page">
<nav class="contents" aria-label="Operations"><details open><summary>Operations</summary>${menu}</details></nav>
<main id="content" tabindex="-1">
<h1>${info.title} <small>${info.version}</small></h1>
${markdown(info.description)}
<p><a href="${url}/openapi.json">openapi.json</a> has all this for machines.</p>
${grouped.map(
  (group) => html`<h2 id="${group.name}">${group.name}</h2>${markdown(group.description)}${group.endpoints.map(view)}`
)}
</main></div>`
  return makePage({ title: info.title, style: reference, script, body })
}
