import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { optionName } from "../../src/cli/Inputs.ts"
import { momentForms } from "../../src/domain/Moment.ts"
import { limits } from "../../src/services/access/Key.ts"
import { companionsOf, samplesOf } from "../contracts/InputSamples.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, json, list, misuse, text } from "./Cli.ts"

const resources = [{ inputs: limits, noun: "keys" }]

const made = Effect.fnUntraced(function* (noun: string) {
  const { id: org } = yield* json("orgs", "create", randomUUID())
  const record = yield* json(noun, "create", "--org", String(org))
  return { org: String(org), id: String(record["id"]) }
})

withLayer(Cli.layer)("what operators write by commands", (it) => {
  for (const { inputs, noun } of resources) {
    it.scoped(`gateway ${noun} create and update have an option for each field`, function* () {
      for (const command of ["create", "update"]) {
        const help = (yield* text(noun, command, "--help")).replaceAll(/\s+/g, " ")
        for (const [field, { description, form }] of Object.entries(inputs)) {
          assert.include(help, `--${optionName(field)} `)
          assert.include(help.toLowerCase(), description.toLowerCase())
          if (form.kind === "time") assert.include(help, momentForms)
        }
      }
    })

    for (const [field, input] of Object.entries(inputs)) {
      const option = `--${optionName(field)}`
      it.scoped(`gateway ${noun} ${option} is read, shown, taken away, and refused where it is wrong`, function* () {
        const { id, org } = yield* made(noun)
        const given = companionsOf(inputs, field).flatMap((name) => {
          const companion = new Map(Object.entries(inputs)).get(name)
          return companion === undefined ? [] : [`--${optionName(name)}`, samplesOf(companion.form).word]
        })
        const { value, wrongWords } = samplesOf(input.form)
        assert.deepStrictEqual((yield* json(noun, "update", id, ...given))[field], value)
        assert.deepStrictEqual((yield* list(noun, "list", "--org", org))[0]?.[field], value)
        const header = (yield* text(noun, "list", "--org", org)).split("\n")[0] ?? ""
        assert.include(header.split(/\s+/), field.toUpperCase())
        for (const word of wrongWords) {
          assert.include(yield* misuse([noun, "update", id, option, word]), option)
        }
        if (input.none === undefined) return
        assert.isNull((yield* json(noun, "update", id, option, input.none.word))[field])
      })
    }
  }
})
