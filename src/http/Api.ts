import { HttpApi, OpenApi } from "@effect/platform"
import { ChatStreamEvent } from "./chat/CompletionSchema.ts"
import { Chat } from "./chat/Schema.ts"
import { Credits } from "./credits/Schema.ts"
import { Images } from "./images/Schema.ts"
import { Models, ModelsRead } from "./models/Schema.ts"
import { StoredVideos, Videos } from "./videos/Schema.ts"

export class Api extends HttpApi.make("gateway")
  .add(Chat)
  .add(Images)
  .add(Videos)
  .add(Models)
  .add(Credits)
  .prefix("/v1")
  .annotate(HttpApi.AdditionalSchemas, [ChatStreamEvent])
  .annotateContext(
    OpenApi.annotations({
      title: "Generation Gateway API",
      version: "1.0.0",
      description: "One key and one prepaid balance for text, image and video generation models.",
      servers: [{ url: "/v1" }]
    })
  ) {}

/** What the platform's router serves; `GeneratingRoutes` has the rest. */
export class ResourceApi extends HttpApi.make("gateway").add(StoredVideos).add(ModelsRead).add(Credits).prefix("/v1") {}
