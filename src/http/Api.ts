import { HttpApi, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Credits, Statements, Usage } from "./account/AccountApi.ts"
import { Chat, ChatStreamEvent } from "./chat/ChatSchema.ts"
import { NoSuchPath, response, TooLarge } from "./errors/ErrorMessages.ts"
import { Images } from "./images/ImageBody.ts"
import { Messages, MessagesStreamEvent } from "./messages/MessagesSchema.ts"
import { Models, ModelsRead } from "./models/ModelSchema.ts"
import { Quotes } from "./quote/QuoteEndpoint.ts"
import { ResponseStreamEvent, Responses } from "./responses/ResponsesSchema.ts"
import { adminPrefix, apiPrefix } from "./schema/Endpoints.ts"
import { StoredVideos, Videos } from "./videos/VideoBody.ts"

const Docs = HttpApiGroup.make("docs")
  .add(HttpApiEndpoint.get("home", "/"))
  .add(HttpApiEndpoint.get("quickstart", "/docs"))
  .add(HttpApiEndpoint.get("page", "/docs/:name").setPath(Schema.Struct({ name: Schema.String })))
  .add(HttpApiEndpoint.get("contract", `${apiPrefix}/openapi.json`))
  .add(HttpApiEndpoint.get("adminContract", `${adminPrefix}/openapi.json`))
  .addError(NoSuchPath)

const Console = HttpApiGroup.make("console")
  .add(HttpApiEndpoint.get("page", "/console"))
  .add(HttpApiEndpoint.get("file", "/console/*").setPath(Schema.Struct({ "*": Schema.String })))
  .addError(NoSuchPath)

/** Endpoints for probes and monitoring. */
const System = HttpApiGroup.make("system")
  .add(HttpApiEndpoint.get("health", "/healthz"))
  .add(HttpApiEndpoint.get("readiness", "/readyz"))
  .add(HttpApiEndpoint.get("metrics", "/metrics"))
  .addError(NoSuchPath)

/** The published document starts with this description. `openapi/OpenApi.ts` appends its conventions. */
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

/** The endpoints that do not generate. The platform's router serves them. */
export class ResourceApi extends HttpApi.make("gateway")
  .add(StoredVideos)
  .add(ModelsRead)
  .add(Credits)
  .add(Usage)
  .add(Statements)
  .prefix(apiPrefix) {}

const Media = HttpApiGroup.make("media").add(HttpApiEndpoint.get("file", "/media/*")).addError(NoSuchPath)

/** Receives the payment provider's events. */
const Stripe = HttpApiGroup.make("stripe")
  .add(HttpApiEndpoint.post("webhook", "/stripe/webhook"))
  .addError(NoSuchPath)
  .addError(response("The event is invalid.", "InvalidRequest", "BodyTooSlow"))
  .addError(TooLarge)
  .addError(response("The gateway is busy.", "GatewayBusy", "Aborted"))

/** Everything outside the API: pages, documents, files, probes and metrics. */
export class SiteApi extends HttpApi.make("site").add(System).add(Docs).add(Console).add(Media).add(Stripe) {}
