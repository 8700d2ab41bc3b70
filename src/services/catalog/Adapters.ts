import type { Surface } from "../../domain/Model.ts"

/** Wire formats by name, each with the surfaces it serves. */
export type Adapters = ReadonlyMap<string, ReadonlySet<Surface>>

const surfaces = (...of: ReadonlyArray<Surface>): ReadonlySet<Surface> => new Set(of)

/**
 * Wires that a catalog may name besides those the gateway was built with: routes that speak one of them stay off,
 * and the check says so. Any other name is a mistake in the catalog.
 */
const foreseen: Adapters = new Map([["sandbox", surfaces("chat", "image", "video")]])

/** Every wire that a catalog may name, in a gateway with these adapters. */
export const wires = (built: Adapters): Adapters => {
  const all = new Map(built)
  for (const [name, served] of foreseen) all.set(name, new Set([...(built.get(name) ?? []), ...served]))
  return all
}
