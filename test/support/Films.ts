import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect } from "effect"
import { Deployment } from "./Deployment.ts"

/** A model of 4, 6 or 8 seconds at 0.10 USD each, over two accounts of a farm, `a` before `b`. */
export const filmCatalog = (farm: string): string => {
  const account = (name: string) => ({ adapter: "fal-queue", base_url: `${farm}/${name}`, credential: "FARM_KEY" })
  return JSON.stringify({
    providers: { a: account("a"), b: account("b") },
    models: [
      {
        id: "film",
        surface: "video",
        pricing: { per_second_usd: 0.1 },
        seconds: { allowed: [4, 6, 8], default: 8 },
        reference_image: "optional",
        routes: [
          { provider: "a", model: "vendor/film/text", image_model: "vendor/film/image" },
          { provider: "b", model: "vendor/film/text", image_model: "vendor/film/image", preference: 2 }
        ]
      }
    ]
  })
}

/** In nano-USD. */
export const priceOf = (seconds: number): bigint => BigInt(seconds) * 100_000_000n

/** What a gateway of the deployment has in its environment to sell films of this farm. */
export const filmEnvironment = (farm: string) =>
  Effect.gen(function* () {
    const { directory } = yield* Deployment
    const file = path.join(directory, "films.yaml")
    yield* Effect.promise(() => writeFile(file, filmCatalog(farm)))
    return { CATALOG_FILE: file, FARM_KEY: "k" }
  })
