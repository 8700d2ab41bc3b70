import { Effect } from "effect"
import { describeSettings, variables } from "../../src/settings/Variables.ts"
import { findingsIn } from "../docs/PlainEnglish.ts"
import { assert, describe, it } from "../harness/It.ts"
import { commandHelps, printHelp } from "./Helps.ts"

interface Exception {
  /** A command such as `keys create`, or a setting. */
  readonly name: string
  /** How the sentence begins. */
  readonly start: string
  readonly reason: string
}

/** Sentences that may break a rule. The last test fails for an exception that no sentence needs. */
const exceptions: ReadonlyArray<Exception> = []

/** Returns the descriptions of a section's entries, which are indented below its title. */
const entriesOf = (section: string): ReadonlyArray<string> =>
  section
    .split(/\n(?= {2}\S)/)
    .slice(1)
    .map((entry) => entry.trim().replace(/^(?:<?[-\w|[\]<>]+>?(?: [A-Z|a-z]+)?)(?: {2,}|\n +)/, ""))

/** Returns the description of a command and those of its arguments and options, without line breaks. */
const textsOf = (help: string): { readonly description: string; readonly entries: ReadonlyArray<string> } => {
  const [_usage, description = "", ...sections] = help.split("\n\n")
  const entries = sections.filter((section) => /^(?:ARGUMENTS|OPTIONS)\n/.test(section)).flatMap(entriesOf)
  return {
    description: description.replaceAll(/\s+/g, " "),
    entries: entries.map((entry) => entry.replaceAll(/\s+/g, " "))
  }
}

/** Judges each phrase between semicolons as a sentence. */
const findingsOf = (name: string, texts: ReadonlyArray<string>) =>
  findingsIn({ file: name, text: texts.join("\n\n").replaceAll("; ", "\n\n") }).map((finding) => ({ name, ...finding }))

const isExcepted = (name: string, sentence: string, { name: excepted, start }: Exception) =>
  name === excepted && sentence.startsWith(start)

const settingTexts = Object.values(variables).map(({ description, variable }) => ({ variable, description }))

describe("the help", () => {
  const helps = Effect.map(commandHelps(printHelp), (all) => all.map(({ help, name }) => ({ name, ...textsOf(help) })))

  it.effect("of each command and setting is in plain English", function* () {
    const commands = yield* helps
    const findings = [
      ...commands.flatMap(({ description, entries, name }) => findingsOf(name, [description, ...entries])),
      ...settingTexts.flatMap(({ description, variable }) => findingsOf(variable, [description])),
      ...findingsOf("the notes on settings", [describeSettings().split("\n\n").at(-1) ?? ""])
    ]
    const isListed = (exception: Exception) =>
      findings.some(({ name, sentence }) => isExcepted(name, sentence, exception))
    assert.deepStrictEqual(
      findings.filter(({ name, sentence }) => !exceptions.some((one) => isExcepted(name, sentence, one))),
      []
    )
    assert.deepStrictEqual(
      exceptions.filter((exception) => !isListed(exception)),
      []
    )
  })

  it.effect("of each command names the action first, and describes every option", function* () {
    const commands = yield* helps
    assert.isAbove(commands.length, 60)
    assert.isAbove(commands.flatMap(({ entries }) => entries).length, 150)
    for (const { description, entries, name } of commands) {
      assert.match(description, /^(?!(?:The|An?|What|Who|How|Each|Every|Which)\b)[A-Z][a-z]+,? .*\.$/, name)
      for (const entry of entries) assert.match(entry, /^(?![-<])\S.* ?\S/, name)
    }
  })
})
