import type { Model, Surface } from "../../src/domain/Model.ts"
import { unknownModel, vendorNameFinder } from "../../src/domain/ModelNames.ts"
import { assert, describe, it } from "../harness/It.ts"
import { modelNamed } from "../http/openapi/NamedModels.ts"

const named = (surface: Surface, ...ids: ReadonlyArray<string>): ReadonlyArray<Model> =>
  ids.map((id) => modelNamed({ id, surface }))

const models = [
  ...named("chat", "gpt-5.5", "gpt-5.4", "gpt-5.4-mini", "claude-opus-5", "claude-opus-4-8", "claude-opus-4-7"),
  ...named("chat", "vendor/name.v1:free", "talk", "Mixed-Case-1"),
  ...named("image", "gpt-image-2", "gpt-image-1.5"),
  ...named("video", "veo-3.1")
]
const findVendorName = vendorNameFinder(models)
const find = (name: string) => models.find(({ id }) => id === name) ?? findVendorName(name)
const catalog = { models, find }

const suggested = (name: string, surface: Surface | undefined, mayUse?: (model: Model) => boolean) =>
  unknownModel(catalog, name, surface, mayUse).suggestions

describe("an unknown model name", () => {
  it.each<readonly [string, ReadonlyArray<string>]>([
    ["gpt-5.6", ["gpt-5.5", "gpt-5.4"]],
    ["gtp-5.5", ["gpt-5.5"]],
    ["GPT-5.5", ["gpt-5.5"]],
    [" talk\n", ["talk"]],
    ["mixed-case-1", ["Mixed-Case-1"]],
    ["claude-opus-4.8", ["claude-opus-4-8"]],
    ["anthropic/claude-opus-4.8", ["claude-opus-4-8"]],
    ["gpt-5.5-2026-04-01", ["gpt-5.5"]],
    ["gpt-5.4-mini:free", ["gpt-5.4-mini"]],
    ["claude-opus", ["claude-opus-5"]],
    ["claude", ["claude-opus-5", "claude-opus-4-8", "claude-opus-4-7"]],
    ["gpt", ["gpt-5.5", "gpt-5.4", "gpt-5.4-mini"]],
    ["name.v1:free", ["vendor/name.v1:free"]],
    ["tall", []],
    ["nobody", []],
    ["", []],
    ["/", []],
    ["gpt-image-3", []],
    ["\u0000", []],
    ["__proto__", []],
    ["\u202e", []]
  ])("has suggestions of its surface: %j", (name, ids) => {
    assert.deepStrictEqual(suggested(name, "chat"), ids)
  })

  it("has none if it is too long", () => {
    for (const name of [`gpt-5.5-${"x".repeat(200)}`, "gpt-5.5".repeat(150_000)]) {
      assert.deepStrictEqual(suggested(name, "chat"), [])
    }
  })

  it("has suggestions of every surface where it was only looked up", () => {
    assert.deepStrictEqual(suggested("gpt-image-3", undefined), ["gpt-image-2"])
    assert.deepStrictEqual(suggested("gpt-5.6", undefined), ["gpt-5.5", "gpt-5.4"])
  })

  it("gets no suggestion of a model that its key may not use", () => {
    assert.deepStrictEqual(
      suggested("gpt-5.6", "chat", ({ id }) => id !== "gpt-5.5"),
      ["gpt-5.4"]
    )
    assert.isUndefined(unknownModel(catalog, "gpt-image-2", "chat", () => false).elsewhere)
  })

  it("is told where a model of another surface is used, also by its vendor's name", () => {
    for (const name of ["gpt-image-2", "openai/gpt-image-2"]) {
      const failure = unknownModel(catalog, name, "chat")
      assert.deepStrictEqual(failure.elsewhere, { id: "gpt-image-2", surface: "image" })
      assert.deepStrictEqual([failure.model, failure.suggestions], [name, []])
    }
  })
})

describe("an id with a vendor's name before it", () => {
  const found = (name: string, ...ids: ReadonlyArray<string>) => vendorNameFinder(named("chat", ...ids))(name)?.id

  it.each(["openai/a-1", "openrouter/openai/a-1", "x-ai/a-1", "~user.name/a-1"])("is the id: %s", (name) => {
    assert.strictEqual(found(name, "a-1", "b-1"), "a-1")
  })

  it.each(["/a-1", "//a-1", "open ai/a-1", "a//a-1", "https://openai/a-1", "\u0000/a-1", "openai/", "openai/a-2"])(
    "is none where that is no name, or not the id: %j",
    (name) => {
      assert.isUndefined(found(name, "a-1"))
    }
  )

  it("is none where another id ends in the same, or where it is too long", () => {
    assert.isUndefined(found("c/a-1", "a-1", "b/a-1"))
    assert.isUndefined(found("c/a-1", "b/a-1", "a-1"))
    assert.isUndefined(found("c/a-1", "b/a-1"))
    assert.isUndefined(found(`${"c".repeat(200)}/a-1`, "a-1"))
  })
})
