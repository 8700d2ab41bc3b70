import { HttpApi, OpenApi } from "@effect/platform"
import { Chat, ChatStreamEvent } from "./chat/ChatSchema.ts"
import { Console } from "./console/Schema.ts"
import { Credits } from "./credits/Schema.ts"
import { Docs } from "./docs/Schema.ts"
import { Images } from "./images/Schema.ts"
import { Media } from "./media/Schema.ts"
import { Messages, MessagesStreamEvent } from "./messages/MessagesSchema.ts"
import { Models, ModelsRead } from "./models/Schema.ts"
import { Quotes } from "./quote/Schema.ts"
import { ResponseStreamEvent, Responses } from "./responses/ResponsesSchema.ts"
import { apiPrefix } from "./schema/ServedPath.ts"
import { StatementGroup } from "./statement/Schema.ts"
import { Stripe } from "./stripe/Schema.ts"
import { System } from "./system/Schema.ts"
import { Usage } from "./usage/Schema.ts"
import { StoredVideos, Videos } from "./videos/Schema.ts"

/** `openapi/Introduction.ts` goes on from the description. */
export const about = {
  title: "Generation Gateway API",
  version: "1.0.0",
  description: "One key and one prepaid balance for text, image and video generation models."
}

export class Api extends HttpApi.make("gateway")
  .add(Chat)
  .add(Messages)
  .add(Responses)
  .add(Images)
  .add(Videos)
  .add(Quotes)
  .add(Models)
  .add(Credits)
  .add(Usage)
  .add(StatementGroup)
  .prefix(apiPrefix)
  .annotate(HttpApi.AdditionalSchemas, [ChatStreamEvent, MessagesStreamEvent, ResponseStreamEvent])
  .annotateContext(
    OpenApi.annotations({
      ...about,
      servers: [{ url: "/v1" }]
    })
  ) {}

/** What of it the platform's router serves: all that does not generate. */
export class ResourceApi extends HttpApi.make("gateway")
  .add(StoredVideos)
  .add(ModelsRead)
  .add(Credits)
  .add(Usage)
  .add(StatementGroup)
  .prefix(apiPrefix) {}

/** What is served beside the API: pages, documents, files, and what machines ask. */
export class SiteApi extends HttpApi.make("site").add(System).add(Docs).add(Console).add(Media).add(Stripe) {}
