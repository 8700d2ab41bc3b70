import type { Surface } from "../../domain/Model.ts"

/** Wire formats by name, each with the surfaces it serves. */
export type Adapters = ReadonlyMap<string, ReadonlySet<Surface>>

const surfaces = (...of: ReadonlyArray<Surface>): ReadonlySet<Surface> => new Set(of)

/**
 * Every wire that a catalog may name. A gateway that was not built with one of them keeps the routes that
 * speak it off, and says so; any other name is a mistake in the catalog.
 */
export const wires: Adapters = new Map([
  ["openai-chat", surfaces("chat")],
  ["openai-responses", surfaces("chat")],
  ["anthropic", surfaces("chat")],
  ["gemini", surfaces("chat", "image")],
  ["openai-images", surfaces("image")],
  ["fal-queue", surfaces("image", "video")],
  ["replicate", surfaces("image", "video")],
  ["sandbox", surfaces("chat", "image", "video")]
])
