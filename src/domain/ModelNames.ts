import { ModelNotFound } from "./Failure.ts"
import type { Model, Surface } from "./Model.ts"
import { findNearest } from "./Nearest.ts"

/** A longer name is compared with nothing. */
const longestName = 200
const mostSuggestions = 3

/** Such as `openai` or `openrouter/openai`. */
const vendor = /^[\w.~-]+(?:\/[\w.~-]+)*$/

const lastPart = (name: string): string => name.slice(name.lastIndexOf("/") + 1)

/** Finds models by their ids with a vendor's name before them, but for ids in which another id of the catalog ends. */
export const vendorNameFinder = (models: ReadonlyArray<Model>): ((name: string) => Model | undefined) => {
  const found = new Map<string, Model | undefined>()
  for (const model of models) {
    const name = lastPart(model.id)
    found.set(name, found.has(name) || name !== model.id ? undefined : model)
  }
  return (name) => {
    const slash = name.lastIndexOf("/")
    const isVendorName = slash > 0 && name.length <= longestName && vendor.test(name.slice(0, slash))
    return isVendorName ? found.get(name.slice(slash + 1)) : undefined
  }
}

const continues = (name: string, start: string): boolean =>
  name.startsWith(start) && /[-.:@_]/.test(name.charAt(start.length))

/** Ids that are spelt alike, or that the name goes on from, or that go on from the name. */
const findMeant = (name: string, ids: ReadonlyArray<string>): ReadonlyArray<string> => {
  const nearest = findNearest(name, ids)
  if (nearest.length > 0) return nearest
  const longer = ids.filter((id) => continues(name, id))
  const [longest] = longer.toSorted((a, b) => b.length - a.length)
  return longest === undefined ? ids.filter((id) => continues(id, name)) : [longest]
}

const suggest = (name: string, models: ReadonlyArray<Model>): ReadonlyArray<string> => {
  if (name.length > longestName) return []
  const given = name.trim().toLowerCase()
  const suggestBy = (text: string, nameOf: (id: string) => string) => {
    const names = models.map(({ id }) => nameOf(id.toLowerCase()))
    const meant = new Set(names.includes(text) ? [text] : findMeant(text, names))
    return models.filter((_, index) => meant.has(names[index] ?? "")).map(({ id }) => id)
  }
  const found = suggestBy(given, (id) => id)
  return (found.length > 0 ? found : suggestBy(lastPart(given), lastPart)).slice(0, mostSuggestions)
}

interface Named {
  readonly models: ReadonlyArray<Model>
  readonly find: (name: string) => Model | undefined
}

/** That no model of the surface has the name, with what may be meant among those that the key may use. */
export const unknownModel = (
  { find, models }: Named,
  name: string,
  surface: Surface | undefined,
  mayUse: (model: Model) => boolean = () => true
): ModelNotFound => {
  const found = find(name)
  const elsewhere = found !== undefined && found.surface !== surface && mayUse(found) ? found : undefined
  const usable = models.filter((model) => (surface === undefined || model.surface === surface) && mayUse(model))
  return new ModelNotFound({
    model: name,
    surface,
    elsewhere: elsewhere && { id: elsewhere.id, surface: elsewhere.surface },
    suggestions: elsewhere === undefined ? suggest(name, usable) : []
  })
}
