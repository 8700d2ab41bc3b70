import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { optionName } from "../../src/cli/InputOptions.ts"
import { momentForms } from "../../src/domain/Moment.ts"
import { limits, reissuing } from "../../src/services/access/Key.ts"
import { settings } from "../../src/services/admin/Organization.ts"
import { companionsOf, samplesOf } from "../contracts/InputSamples.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json, list, text } from "./Cli.ts"

const resources = [{ inputs: limits, noun: "keys" }]

const made = Effect.fnUntraced(function* (noun: string) {
  const { id: org } = yield* json("orgs", "create", randomUUID())
  const record = yield* json(noun, "create", "--org", String(org))
  return { org: String(org), id: String(record["id"]) }
})

withLayer(Cli.layer)("what operators write by commands", (it) => {
  it.scoped("a reissue has no grace by default, and orgs update keeps what is left out", function* () {
    const { none } = reissuing.grace_seconds
    assert.include((yield* text("keys", "reissue", "--help")).replaceAll(/\s+/g, " "), `if left out: ${none?.word}`)
    const help = (yield* text("orgs", "update", "--help")).replaceAll(/\s+/g, " ")
    assert.include(help, `or ${settings.cap_usd.none?.word}`)
    assert.notMatch(help, /if left out|a new one/)
  })

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

    it.scoped(`gateway ${noun} create tells what each option is if left out, and update keeps it then`, function* () {
      const helpOf = (command: string) =>
        Effect.map(text(noun, command, "--help"), (help) => help.replaceAll(/\s+/g, " "))
      const create = yield* helpOf("create")
      for (const { none } of Object.values(inputs)) {
        if (none !== undefined) assert.include(create, `or ${none.word}; if left out: ${none.word}`)
      }
      assert.notMatch(yield* helpOf("update"), /if left out|a new one/)
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
          assert.include(yield* failure([noun, "update", id, option, word]), `${option} must be ${input.accepts}.`)
        }
        if (input.none === undefined) return
        assert.isNull((yield* json(noun, "update", id, option, input.none.word))[field])
      })
    }
  }
})
