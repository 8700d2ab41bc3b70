import { existsSync } from "node:fs"
import path from "node:path"
import { CliConfig, CommandDescriptor } from "@effect/cli"
import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { usageOf } from "../../src/cli/CommandExamples.ts"
import { interpret } from "../../src/cli/CommandLine.ts"
import { commandOf, groupsFor } from "../../src/cli.ts"
import { anchors, page, root } from "../docs/Markdown.ts"
import { assert, describe, it } from "../harness/It.ts"
import { commandHelps, printHelp, runAlone } from "./Helps.ts"

/** Splits a line as a shell does, without the pipe and the redirection at its end. */
const argumentsOf = (line: string): ReadonlyArray<string> => {
  const [command = ""] = line.split(/ [|>] /)
  const words = Array.from(command.matchAll(/"([^"]*)"|(\S+)/g), ([, quoted, word = ""]) => quoted ?? word)
  return words.slice(words.indexOf("gateway") + 1)
}

const sectionOf = (help: string, title: string) => {
  const [, section = ""] = help.split(new RegExp(`^${title}$`, "m"))
  return (
    section
      .split(/\n(?=\S)|\n\n/)[0]
      ?.trim()
      .split(/\n\s*/) ?? []
  )
}

const groups = groupsFor(() => Effect.void)
const command = commandOf(groups).descriptor

/** Parses a command line without running it. */
const parse = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const intent = yield* interpret(groups, args)
  if (intent.kind !== "run") return yield* Effect.dieMessage(`${args.join(" ")} does not run`)
  yield* CommandDescriptor.parse(command, ["gateway", ...intent.args], CliConfig.defaultConfig)
}, Effect.provide(NodeContext.layer))

describe("help", () => {
  const helps = Effect.runSync(Effect.cached(commandHelps(printHelp)))

  it.effect("fits a terminal of 80 columns and 40 lines", function* () {
    for (const { help, name } of [...(yield* helps), { name: "", help: yield* printHelp("--help") }]) {
      const lines = help.split("\nSETTINGS")[0]?.trimEnd().split("\n") ?? []
      assert.isAtMost(lines.length, 40, name)
      for (const line of lines) assert.isAtMost(line.length, 80, line)
    }
  })

  it.effect("has two examples that the command accepts", function* () {
    for (const { help, name } of yield* helps) {
      const examples = sectionOf(help, "EXAMPLES")
      assert.lengthOf(new Set(examples), 2, name)
      for (const example of examples) {
        const args = argumentsOf(example)
        assert.strictEqual(args.slice(0, name.split(" ").length).join(" "), name, example)
        yield* Effect.mapError(parse(args), (error) => new Error(`${example}: ${JSON.stringify(error)}`))
      }
    }
  })

  it.effect("names a page of the documentation that exists", function* () {
    for (const { help, name } of [...(yield* helps), { name: "", help: yield* printHelp() }]) {
      const [target = "", ...others] = sectionOf(help, "DOCS")
      assert.lengthOf(others, 0, name)
      const [file = "", anchor] = target.split("#")
      assert.isTrue(existsSync(path.join(root, file)), `${name}: ${target}`)
      if (anchor !== undefined) assert.isTrue(anchors(page(file)).has(anchor), `${name}: ${target}`)
    }
    assert.strictEqual(usageOf(["nope"]), undefined)
  })

  it.effect("is the same however it is asked for", function* () {
    const create = yield* printHelp("keys", "create", "--help")
    assert.match(create, /^gateway keys create --org ORG /)
    for (const args of [
      "help keys create",
      "keys create -h",
      "keys help create",
      "--help keys create",
      "keys create --org acme -h",
      "keys create --org --help"
    ]) {
      assert.deepStrictEqual(yield* runAlone(...args.split(" ")), { code: 0, stdout: create, stderr: "" }, args)
    }
    const keys = yield* printHelp("keys", "--help")
    assert.match(keys, /^gateway keys COMMAND\n/)
    for (const args of ["keys", "help keys", "keys help", "keys -h"]) {
      assert.deepStrictEqual(yield* runAlone(...args.split(" ")), { code: 0, stdout: keys, stderr: "" }, args)
    }
    const overview = yield* printHelp("--help")
    for (const args of [[], ["help"], ["-h"], ["--help", "--json"]]) {
      assert.deepStrictEqual(yield* runAlone(...args), { code: 0, stdout: overview, stderr: "" })
    }
  })

  it.effect("and version are options of every command", function* () {
    for (const args of ["-v", "--version", "keys -v", "keys create --version", "orgs show acme -v"]) {
      assert.deepStrictEqual(yield* runAlone(...args.split(" ")), { code: 0, stdout: "1.0.0", stderr: "" }, args)
    }
  })
})
