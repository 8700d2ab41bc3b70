import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { type Answer, json, respond } from "../Answer.ts"
import { about } from "../Api.ts"
import { openApiDocument } from "../openapi/OpenApi.ts"
import type { Page } from "./Page.ts"

const send = ({ headers, text }: Page) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    const unchanged = request.headers["if-none-match"] === headers["etag"]
    const { "content-length": _, ...rest } = headers
    const answer: Answer = unchanged ? { status: 304, headers: rest, body: "" } : { status: 200, headers, body: text }
    return respond(answer)
  })

/** What the pages are made of is loaded by the first who asks. */
export const DocsRoutes = ({ publicUrl }: { readonly publicUrl: string }) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const baseUrl = `${publicUrl}/v1`
      let made: { readonly models: typeof catalog.models; readonly page: Page } | undefined

      const reference = Effect.promise(async () => {
        const { referencePage } = await import("./Reference.ts")
        const { models } = catalog
        if (made?.models !== models) made = { models, page: referencePage(openApiDocument(models, baseUrl)) }
        return made.page
      })
      const home = Effect.promise(async () => (await import("./Home.ts")).homePage({ ...about, baseUrl }))

      const { title, ...rest } = about
      const links = { base_url: baseUrl, documentation: `${publicUrl}/docs`, openapi: `${baseUrl}/openapi.json` }
      const summary = json(200, { name: title, ...rest, ...links }, { vary: "accept" })

      yield* router.get("/docs", Effect.flatMap(reference, send))
      yield* router.get(
        "/",
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers: { accept = "" } }) =>
          accept.includes("text/html") ? Effect.flatMap(home, send) : Effect.succeed(respond(summary))
        )
      )
    })
  )
