import type { ChatModel, Model } from "../../domain/Model.ts"
import type { ModelInfo, ModelPage } from "./Schema.ts"

const infoOf = ({ contextLength, created, id, maxOutput, ownMaxOutput = maxOutput }: ChatModel): ModelInfo => ({
  type: "model",
  id,
  display_name: id,
  created_at: new Date(created * 1000).toISOString().replace(".000", ""),
  max_input_tokens: contextLength,
  max_tokens: ownMaxOutput
})

const usualLimit = 20
const maxModels = 1_000

const limitIn = (query: URLSearchParams): number => {
  const given = Number(query.get("limit") ?? usualLimit)
  return Number.isInteger(given) && given > 0 ? Math.min(given, maxModels) : usualLimit
}

const isChat = (model: Model): model is ChatModel => model.surface === "chat"

/** A cursor that is no model's id is ignored. */
export const modelPage = (models: ReadonlyArray<Model>, query: URLSearchParams): ModelPage => {
  const limit = limitIn(query)
  const all = models.filter(isChat)
  const at = (name: string) => all.findIndex(({ id }) => id === query.get(name))
  const [after, before] = [at("after_id"), at("before_id")]
  const [from, to] = before === -1 ? [after + 1, after + 1 + limit] : [Math.max(0, before - limit), before]
  const data = all.slice(from, to).map(infoOf)
  return {
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before === -1 ? to < all.length : from > 0
  }
}

/** Undefined for a model of another surface. */
export const modelInfo = (model: Model | undefined): ModelInfo | undefined =>
  model?.surface === "chat" ? infoOf(model) : undefined
