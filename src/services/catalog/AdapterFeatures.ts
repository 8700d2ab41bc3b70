import type { Either, ParseResult } from "effect"
import { type Feature, type RouteOptions, Surface } from "../../domain/Model.ts"

export type Features = (options: RouteOptions) => ReadonlySet<Feature>

export type DecodeOptions = (options: RouteOptions) => Either.Either<unknown, ParseResult.ParseError>

export interface Adapter {
  readonly surfaces: ReadonlyMap<Surface, Features>
  readonly options?: DecodeOptions | undefined
}

export type Adapters = ReadonlyMap<string, Adapter>

const chatFeatures = ["tools", "vision", "response_format", "web_search", "reasoning", "sampling"] as const
export const imageFeatures = ["edit", "1K", "2K", "4K", "size", "aspect_ratio"] as const

export const everything: Features = () => new Set<Feature>([...chatFeatures, ...imageFeatures])

/** Planned wires: a catalog may name them, and their routes stay off; any other name is a mistake. */
const foreseen: Adapters = new Map([
  ["sandbox", { surfaces: new Map(Surface.literals.map((surface) => [surface, everything])) }]
])

export const wires = (built: Adapters): Adapters =>
  new Map([...built, ...[...foreseen].filter(([name]) => !built.has(name))])
