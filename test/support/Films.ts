import { writeFile } from "node:fs/promises"
import path from "node:path"
import { Effect } from "effect"
import { Deployment } from "./Deployment.ts"

interface Account {
  readonly base_url: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A model of 4, 6 or 8 seconds at 0.10 USD each, over these accounts, one after the other. */
const model = (id: string, accounts: ReadonlyArray<string>) => ({
  id,
  surface: "video",
  pricing: { per_second_usd: 0.1 },
  seconds: { allowed: [4, 6, 8], default: 8 },
  reference_image: "optional",
  routes: accounts.map((provider, index) => ({
    provider,
    model: "vendor/film/text",
    image_model: "vendor/film/image",
    preference: index + 1
  }))
})

/** The model `film` over two accounts of a farm, `a` before `b`, and one over each further account, of its name. */
export const filmCatalog = (farm: string, more: Readonly<Record<string, Account>> = {}): string => {
  const accounts = { a: { base_url: `${farm}/a` }, b: { base_url: `${farm}/b` }, ...more }
  return JSON.stringify({
    providers: Object.fromEntries(
      Object.entries(accounts).map(([name, account]) => [
        name,
        { adapter: "fal-queue", credential: "FARM_KEY", ...account }
      ])
    ),
    models: [model("film", ["a", "b"]), ...Object.keys(more).map((name) => model(name, [name]))]
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
