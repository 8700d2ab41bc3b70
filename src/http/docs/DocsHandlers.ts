import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { modelAt } from "../../domain/Model.ts"
import { Catalog, type CatalogSnapshot, cachePerSnapshot } from "../../services/catalog/Catalog.ts"
import { listModel } from "../../services/catalog/ModelEntry.ts"
import { about, SiteApi } from "../Api.ts"
import { adminDocument } from "../admin/AdminApi.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { json, respond, respondJson, respondTagged } from "../HttpAnswer.ts"
import { openApiDocument } from "../openapi/OpenApi.ts"
import { apiPrefix } from "../schema/Endpoints.ts"
import type { Page } from "./DocsPage.ts"

const send = (page: Page) => Effect.map(HttpServerRequest.HttpServerRequest, (request) => respondTagged(request, page))

/** Serves the documentation. The texts of its pages are loaded at the first request. */
export const DocsHandlers = (options: OwnNames & { readonly isConsolePublic: boolean }) =>
  HttpApiBuilder.group(
    SiteApi,
    "docs",
    Effect.fnUntraced(function* (handlers) {
      const baseUrl = `${options.publicUrl}${apiPrefix}`
      const catalog = yield* Catalog
      const describe = ({ models }: CatalogSnapshot, now: number) =>
        openApiDocument(
          models.map((model) => modelAt(model, now)),
          listModel,
          baseUrl
        )
      const apiDocument = cachePerSnapshot(catalog, (snapshot, now) =>
        Buffer.from(JSON.stringify(describe(snapshot, now)))
      )
      const adminApiDocument = yield* Effect.cached(Effect.sync(() => Buffer.from(JSON.stringify(adminDocument()))))
      const cacheBySnapshot = <A>(make: (snapshot: CatalogSnapshot, now: number) => Promise<A>) =>
        Effect.flatMap(cachePerSnapshot(catalog, make), (promise) => Effect.promise(() => promise))
      const pages = cacheBySnapshot(async (snapshot, now) => {
        const { docsPages } = await import("./guides/Guides.ts")
        const models = snapshot.models.map((model) => modelAt(model, now))
        return docsPages({
          models,
          listModel,
          published: describe(snapshot, now),
          publicUrl: options.publicUrl
        })
      })
      const sendPage = (name: string) =>
        Effect.gen(function* () {
          const page = (yield* pages).get(name)
          return yield* page === undefined ? new UnknownEndpoint() : send(page)
        })
      const home = Effect.promise(async () => (await import("./guides/Guides.ts")).homePage({ ...about, baseUrl }))

      const { title, ...rest } = about
      const links = {
        base_url: baseUrl,
        documentation: `${options.publicUrl}/docs`,
        openapi: `${baseUrl}/openapi.json`
      }
      const summary = json(200, { name: title, ...rest, ...links })

      return handlers
        .handleRaw("home", ({ request: { headers } }) =>
          Effect.map(
            headers["accept"]?.includes("text/html") ? Effect.flatMap(home, send) : Effect.succeed(respond(summary)),
            HttpServerResponse.setHeader("vary", "accept")
          )
        )
        .handleRaw("quickstart", () => sendPage(""))
        .handleRaw("page", ({ path: { name } }) => sendPage(name))
        .handleRaw("contract", () => Effect.map(apiDocument, respondJson))
        .handleRaw("adminContract", () =>
          Effect.zipRight(requireLoopback(options.isConsolePublic, options), Effect.map(adminApiDocument, respondJson))
        )
    })
  )
