import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { modelAt } from "../../domain/Model.ts"
import { Catalog, type CatalogSnapshot, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listModel } from "../../services/catalog/Surfaces.ts"
import { json, respond, respondJson, respondTagged } from "../Answer.ts"
import { about, SiteApi } from "../Api.ts"
import { type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { adminDocument } from "../openapi/AdminDocument.ts"
import { openApiDocument } from "../openapi/OpenApi.ts"
import { apiPrefix } from "../schema/Endpoints.ts"
import type { Page } from "./Page.ts"

const send = (page: Page) => Effect.map(HttpServerRequest.HttpServerRequest, (request) => respondTagged(request, page))

/** What the pages are made of is loaded by the first who asks. */
export const DocsHandlers = (options: OwnNames & { readonly consolePublic: boolean }) =>
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
      const contract = perSnapshot(catalog, (snapshot, now) => Buffer.from(JSON.stringify(describe(snapshot, now))))
      const adminContract = yield* Effect.cached(Effect.sync(() => Buffer.from(JSON.stringify(adminDocument()))))
      const madeOf = <A>(make: (snapshot: CatalogSnapshot, now: number) => Promise<A>) =>
        Effect.flatMap(perSnapshot(catalog, make), (made) => Effect.promise(() => made))
      const reference = madeOf(async (snapshot, now) => {
        const { referencePage } = await import("./Reference.ts")
        return referencePage(describe(snapshot, now), options.publicUrl)
      })
      const guides = madeOf(async (snapshot, now) => {
        const { guidePages } = await import("./guides/Guides.ts")
        const models = snapshot.models.map((model) => modelAt(model, now))
        return guidePages({
          models,
          listed: listModel,
          published: describe(snapshot, now),
          publicUrl: options.publicUrl
        })
      })
      const home = Effect.promise(async () => (await import("./Home.ts")).homePage({ ...about, baseUrl }))

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
        .handleRaw("reference", () => Effect.flatMap(reference, send))
        .handleRaw("guide", ({ path: { name } }) =>
          Effect.gen(function* () {
            const page = (yield* guides).get(name)
            return yield* page === undefined ? new UnknownEndpoint() : send(page)
          })
        )
        .handleRaw("contract", () => Effect.map(contract, respondJson))
        .handleRaw("adminContract", () =>
          Effect.zipRight(requireLoopback(options.consolePublic, options), Effect.map(adminContract, respondJson))
        )
    })
  )
