import { assert, describe, it } from "@effect/vitest"
import { options as decoder, optionNames } from "../../src/providers/fal-queue/FalQueue.ts"
import { videoRoute } from "../providers/fal-queue/Hosts.ts"
import { page, section, table } from "./Markdown.ts"

const documented = table(section(page("docs/providers.md"), "Models of fal.ai"), "Option")

describe("the options of fal-queue", () => {
  it("are those of the docs", () => {
    assert.sameMembers(
      documented.map(([name]) => name),
      [...optionNames]
    )
  })

  it("have the defaults of the docs", () => {
    const { secondsField, sizeField } = decoder.of(videoRoute("https://queue.fal.run"))
    const effects = new Map(documented.map(([name, effect = ""]) => [name, effect]))
    assert.include(effects.get("seconds_field"), `default \`${secondsField}\``)
    assert.include(effects.get("size_field"), `default \`${sizeField}\``)
  })
})
