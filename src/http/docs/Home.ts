import type { about } from "../Api.ts"
import { codeBlock, html } from "./Html.ts"
import { makePage, type Page } from "./Page.ts"
import { home } from "./Style.ts"

interface Home extends Readonly<typeof about> {
  /** With the version, e.g. `https://host/v1`. */
  readonly baseUrl: string
}

export const homePage = ({ baseUrl, description, title, version }: Home): Page =>
  makePage({
    title,
    style: home,
    body: html`<main>
<h1>${title} <small>${version}</small></h1>
<p>${description}</p>
<p>See what it can do and what that costs:</p>
${codeBlock("The first request", `curl ${baseUrl}/models \\\n  -H "Authorization: Bearer $GATEWAY_KEY"`)}
<p><a href="docs">API reference</a> &middot; <a href="docs/models">Models and prices</a> &middot;
<a href="docs/agents">Coding agents</a> &middot; <a href="v1/openapi.json">OpenAPI document</a></p>
</main>`
  })
