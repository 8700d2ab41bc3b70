import { Either } from "effect"
import { ModelNotFound } from "../../src/domain/Failure.ts"
import type { VideoModel } from "../../src/domain/Model.ts"
import { quoteModel } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { chooseSeconds } from "../../src/domain/VideoRules.ts"
import { toWire } from "../../src/http/errors/ErrorMessages.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a model's name in a message", () => {
  it.each([
    ["m", "`m`"],
    ["m".repeat(100), `\`${"m".repeat(100)}\``],
    ["m".repeat(101), `\`${"m".repeat(100)}…\``],
    ["m".repeat(1_000_000), `\`${"m".repeat(100)}…\``],
    ["🦊".repeat(50), `\`${"🦊".repeat(50)}\``],
    ["🦊".repeat(51), `\`${"🦊".repeat(50)}…\``],
    [`m${"🦊".repeat(60)}`, `\`m${"🦊".repeat(49)}…\``]
  ])("%# is whole up to 100 characters, and cut between characters after them", (name, quoted) => {
    assert.strictEqual(quoteModel(name), quoted)
  })

  it("is cut where the model is not found, and where it cannot do what was asked", () => {
    const id = "m".repeat(5_000)
    const cut = `\`${"m".repeat(100)}…\``
    for (const surface of ["chat", "image", "video"] as const) {
      const { message } = toWire(new ModelNotFound({ model: id, surface })).body.error
      assert.isTrue(message.startsWith(`The model ${cut} does not exist or is not a`), message)
    }
    const model: VideoModel = {
      id,
      surface: "video",
      created: 0,
      routes: [],
      pricing: { per: "video", price: NanoUsd(1n) },
      official: undefined,
      seconds: { allowed: [5], default: 5 },
      referenceImage: "required"
    }
    const refusal = chooseSeconds(model, {
      model: id,
      prompt: "p",
      seconds: undefined,
      references: [],
      webhookUrl: undefined
    })
    assert.isTrue(Either.isLeft(refusal) && refusal.left.message.includes(cut))
  })
})
