import type { ListedModel } from "../../domain/ListedModel.ts"
import type { ChatModel, ImageModel, Model, VideoModel } from "../../domain/Model.ts"
import { accountExamples } from "./AccountExamples.ts"
import { chatExamples } from "./ChatExamples.ts"
import type { Examples } from "./Example.ts"
import { imageExamples, videoExamples } from "./MediaExamples.ts"

const isChat = (model: Model): model is ChatModel => model.surface === "chat"
const isImage = (model: Model): model is ImageModel => model.surface === "image"
const isVideo = (model: Model): model is VideoModel => model.surface === "video"

/** By operation, made of the first model of each surface; none where the catalog has no such model. */
export const examplesOf = (
  models: ReadonlyArray<Model>,
  listed: (model: Model) => ListedModel
): Readonly<Record<string, Examples>> => {
  const chat = models.find(isChat)
  const image = models.find((model): model is ImageModel => isImage(model) && model.edit) ?? models.find(isImage)
  const video = models.find(isVideo)
  const shown = [chat, image, video].filter((model) => model !== undefined)
  const [first] = shown
  return {
    ...(chat && { ...chatExamples(chat), ...accountExamples(chat) }),
    ...(image && imageExamples(image)),
    ...(video && videoExamples(video)),
    ...(first && {
      listModels: { answer: { object: "list", data: shown.map(listed) } },
      getModel: { answer: listed(first) }
    })
  }
}
