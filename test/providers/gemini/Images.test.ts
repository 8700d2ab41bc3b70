import * as Gemini from "../../../src/providers/gemini/index.ts"
import { imageAdapterContract } from "../../contracts/ImageAdapter.ts"
import type { Fault, Harness } from "../../contracts/ImageHarness.ts"
import { services } from "../../contracts/MediaHarness.ts"
import { aimockHost, ownHost, type Way } from "./ImageHosts.ts"

const refused: ReadonlyArray<Fault> = ["limit", "funds", "key", "request", "image", "server", "missing", "garbage"]
const spoilt: ReadonlyArray<Fault> = ["no picture", "broken picture"]
const whole: ReadonlyArray<Fault> = [
  "moderation",
  "page",
  "empty",
  "error inside",
  "deep error",
  "empty picture",
  "cut answer"
]

const has = (way: Way, waiting: boolean): Harness["has"] => ({
  places: ["inside"],
  revisedPrompt: false,
  edits: way === "generate",
  waiting
})

const harnesses = (way: Way): ReadonlyArray<Harness> => [
  {
    name: `gemini, by ${way}, on our own fake`,
    make: Gemini.make,
    services,
    host: ownHost(way),
    faults: [...refused, ...spoilt, ...whole].filter((fault) => way === "generate" || fault !== "image"),
    has: has(way, true)
  },
  {
    name: `gemini, by ${way}, on aimock`,
    make: Gemini.make,
    services,
    host: aimockHost(way),
    faults:
      way === "generate" ? [...refused, ...spoilt, "moderation"] : [...refused, ...spoilt].filter((w) => w !== "image"),
    has: has(way, false)
  }
]

for (const way of ["generate", "predict"] as const) for (const harness of harnesses(way)) imageAdapterContract(harness)
