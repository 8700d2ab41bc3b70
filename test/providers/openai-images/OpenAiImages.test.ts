import * as OpenAiImages from "../../../src/providers/openai-images/OpenAiImages.ts"
import { imageAdapterContract } from "../../contracts/ImageAdapter.ts"
import type { Fault, Harness } from "../../contracts/ImageHarness.ts"
import { services } from "../../contracts/MediaHarness.ts"
import { aimockHost } from "./Aimock.ts"
import { ownHost } from "./Hosts.ts"

const answered: ReadonlyArray<Fault> = ["limit", "funds", "key", "request", "image", "moderation", "server", "missing"]
const has = { revisedPrompt: true, edits: true }

const harnesses: ReadonlyArray<Harness> = [
  {
    name: "openai-images on our own fake",
    make: OpenAiImages.make,
    services,
    host: ownHost,
    faults: [
      ...answered,
      "page",
      "garbage",
      "empty",
      "error inside",
      "deep error",
      "no picture",
      "broken picture",
      "empty picture",
      "cut answer"
    ],
    has: { ...has, places: ["inside", "own", "elsewhere"], waiting: true }
  },
  {
    name: "openai-images on aimock",
    make: OpenAiImages.make,
    services,
    host: aimockHost,
    faults: [...answered, "garbage", "no picture", "broken picture"],
    has: { ...has, places: ["inside", "elsewhere"], waiting: false }
  }
]

for (const harness of harnesses) imageAdapterContract(harness)
