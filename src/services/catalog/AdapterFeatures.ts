import type { Either, ParseResult } from "effect"
import type { Feature, RouteOptions, Surface } from "../../domain/Model.ts"

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
