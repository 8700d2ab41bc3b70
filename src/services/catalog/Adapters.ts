import type { Either, ParseResult } from "effect"
import type { Feature, RouteOptions, Surface } from "../../domain/Model.ts"

/** What an adapter can do for a route with these options. */
export type Features = (options: RouteOptions) => ReadonlySet<Feature>

/** Left says what is wrong with them. */
export type DecodeOptions = (options: RouteOptions) => Either.Either<unknown, ParseResult.ParseError>

/** A wire format: the surfaces it serves with what it can do there, and the options that its routes may have. */
export interface Adapter {
  readonly surfaces: ReadonlyMap<Surface, Features>
  readonly options?: DecodeOptions | undefined
}

/** Wire formats by name. */
export type Adapters = ReadonlyMap<string, Adapter>

export const everything: Features = () =>
  new Set(["tools", "vision", "response_format", "web_search", "reasoning", "sampling", "edit", "1K", "2K", "4K"])

/**
 * Wires that a catalog may name besides those the gateway was built with: routes that speak one of them stay off,
 * and the check says so. Any other name is a mistake in the catalog.
 */
const foreseen: Adapters = new Map([
  [
    "sandbox",
    {
      surfaces: new Map([
        ["chat", everything],
        ["image", everything],
        ["video", everything]
      ])
    }
  ]
])

/** Every wire that a catalog may name, in a gateway with these adapters. */
export const wires = (built: Adapters): Adapters =>
  new Map([...built, ...[...foreseen].filter(([name]) => !built.has(name))])
