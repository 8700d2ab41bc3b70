import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Aborted, BodyTooLarge, BodyTooSlow, GatewayBusy, InvalidRequest } from "../domain/Failure.ts"
import { Credits, Statements, Usage } from "./account/AccountApi.ts"
import { Chat, ChatStreamEvent } from "./chat/ChatSchema.ts"
import { NoSuchPath, onWire } from "./errors/Schemas.ts"
import { Images } from "./images/ImageBody.ts"
import { Messages, MessagesStreamEvent } from "./messages/MessagesSchema.ts"
import { Models, ModelsRead } from "./models/ModelSchema.ts"
import { Quotes } from "./quote/Quote.ts"
import { ResponseStreamEvent, Responses } from "./responses/ResponsesSchema.ts"
import { apiPrefix } from "./schema/Endpoints.ts"
import { StoredVideos, Videos } from "./videos/VideoBody.ts"

const Docs = HttpApiGroup.make("docs")
  .add(HttpApiEndpoint.get("home", "/"))
  .add(HttpApiEndpoint.get("reference", "/docs"))
  .add(HttpApiEndpoint.get("guide", "/docs/:name").setPath(Schema.Struct({ name: Schema.String })))
  .add(HttpApiEndpoint.get("contract", "/v1/openapi.json"))
  .add(HttpApiEndpoint.get("adminContract", "/admin/v1/openapi.json"))
  .addError(NoSuchPath)

const Console = HttpApiGroup.make("console")
  .add(HttpApiEndpoint.get("page", "/console"))
  .add(HttpApiEndpoint.get("file", "/console/*").setPath(Schema.Struct({ "*": Schema.String })))
  .addError(NoSuchPath)

/** What machines ask of a gateway. */
const System = HttpApiGroup.make("system")
  .add(HttpApiEndpoint.get("health", "/healthz"))
  .add(HttpApiEndpoint.get("readiness", "/readyz"))
  .add(HttpApiEndpoint.get("metrics", "/metrics"))
  .addError(NoSuchPath)

/** `openapi/OpenApi.ts` goes on from the description. */
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
  .add(Statements)
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
  .add(Statements)
  .prefix(apiPrefix) {}

const Media = HttpApiGroup.make("media").add(HttpApiEndpoint.get("file", "/media/*")).addError(NoSuchPath)

/** The events of the payment provider. */
const Stripe = HttpApiGroup.make("stripe")
  .add(HttpApiEndpoint.post("webhook", "/stripe/webhook"))
  .addError(NoSuchPath)
  .addError(onWire(400, InvalidRequest, BodyTooSlow))
  .addError(onWire(413, BodyTooLarge))
  .addError(onWire(503, GatewayBusy, Aborted))

/** What is served beside the API: pages, documents, files, and what machines ask. */
export class SiteApi extends HttpApi.make("site").add(System).add(Docs).add(Console).add(Media).add(Stripe) {}
