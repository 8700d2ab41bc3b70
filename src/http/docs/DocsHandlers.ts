import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listed } from "../../services/catalog/Surfaces.ts"
import { json, respond, respondTagged } from "../Answer.ts"
import { about } from "../Api.ts"
import { openApiDocument } from "../openapi/OpenApi.ts"
import type { Page } from "./Page.ts"

const send = ({ headers, text }: Page) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => respondTagged(request, { headers, body: text }))

/** What the pages are made of is loaded by the first who asks. */
export const DocsRoutes = ({ publicUrl }: { readonly publicUrl: string }) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const baseUrl = `${publicUrl}/v1`
      const reference = perSnapshot(yield* Catalog, async ({ models }) => {
        const { referencePage } = await import("./Reference.ts")
        return referencePage(openApiDocument(models, listed, baseUrl))
      })
      const home = Effect.promise(async () => (await import("./Home.ts")).homePage({ ...about, baseUrl }))

      const { title, ...rest } = about
      const links = { base_url: baseUrl, documentation: `${publicUrl}/docs`, openapi: `${baseUrl}/openapi.json` }
      const summary = json(200, { name: title, ...rest, ...links })

      yield* router.get(
        "/docs",
        Effect.flatMap(reference, (made) =>
          Effect.flatMap(
            Effect.promise(() => made),
            send
          )
        )
      )
      yield* router.get(
        "/",
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers: { accept = "" } }) =>
          accept.includes("text/html") ? Effect.flatMap(home, send) : Effect.succeed(respond(summary))
        ).pipe(Effect.map(HttpServerResponse.setHeader("vary", "accept")))
      )
    })
  )
