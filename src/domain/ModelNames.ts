import { ModelNotFound } from "./Failure.ts"
import type { Model, Surface } from "./Model.ts"
import { findNearest } from "./Wording.ts"

/** Longer names get no suggestions. */
const maxNameLength = 200
const maxSuggestions = 3

/** Such as `openai` or `openrouter/openai`. */
const vendor = /^[\w.~-]+(?:\/[\w.~-]+)*$/

const lastPart = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

/**
 * Returns a function that finds models by vendor and id, such as `openai/gpt-5.5`. It ignores an id if another catalog id
 * ends in it, because the name would be ambiguous.
 */
export const vendorNameFinder = (models: ReadonlyArray<Model>): ((name: string) => Model | undefined) => {
  const byName = new Map<string, Model | undefined>()
  for (const model of models) {
    const name = lastPart(model.id)
    byName.set(name, byName.has(name) || name !== model.id ? undefined : model)
  }
  return (name) => {
    const slash = name.lastIndexOf("/")
    const isVendorName = slash > 0 && name.length <= maxNameLength && vendor.test(name.slice(0, slash))
    return isVendorName ? byName.get(name.slice(slash + 1)) : undefined
  }
}

const continues = (name: string, start: string): boolean =>
  name.startsWith(start) && /[-.:@_]/.test(name.charAt(start.length))

/**
 * Returns the most similar ids. If there are none: the longest id with which the name begins, or else all ids that begin
 * with the name.
 */
const findLikelyIds = (name: string, ids: ReadonlyArray<string>): ReadonlyArray<string> => {
  const nearest = findNearest(name, ids)
  if (nearest.length > 0) return nearest
  const prefixIds = ids.filter((id) => continues(name, id))
  const [prefixId] = prefixIds.toSorted((a, b) => b.length - a.length)
  return prefixId === undefined ? ids.filter((id) => continues(id, name)) : [prefixId]
}

const suggest = (name: string, models: ReadonlyArray<Model>): ReadonlyArray<string> => {
  if (name.length > maxNameLength) return []
  const lowerName = name.trim().toLowerCase()
  const suggestBy = (text: string, nameOf: (id: string) => string) => {
    const names = models.map(({ id }) => nameOf(id.toLowerCase()))
    const likelyNames = new Set(names.includes(text) ? [text] : findLikelyIds(text, names))
    return models.filter((_, index) => likelyNames.has(names[index] ?? "")).map(({ id }) => id)
  }
  const ids = suggestBy(lowerName, (id) => id)
  return (ids.length > 0 ? ids : suggestBy(lastPart(lowerName), lastPart)).slice(0, maxSuggestions)
}

interface ModelLookup {
  readonly models: ReadonlyArray<Model>
  readonly find: (name: string) => Model | undefined
}

/** Returns the failure for an unknown name. Suggests only models that the key may use. */
export const unknownModel = (
  { find, models }: ModelLookup,
  name: string,
  surface: Surface | undefined,
  mayUse: (model: Model) => boolean = () => true
): ModelNotFound => {
  const model = find(name)
  const elsewhere = model !== undefined && model.surface !== surface && mayUse(model) ? model : undefined
  const usable = models.filter((model) => (surface === undefined || model.surface === surface) && mayUse(model))
  return new ModelNotFound({
    model: name,
    surface,
    elsewhere: elsewhere && { id: elsewhere.id, surface: elsewhere.surface },
    suggestions: elsewhere === undefined ? suggest(name, usable) : []
  })
}
