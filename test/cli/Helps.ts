import { Console, Effect } from "effect"
import { vi } from "vitest"
import { run } from "../../src/cli.ts"

/** Runs a command line that reaches no database. */
export const runAlone = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const own = yield* Console.consoleWith(Effect.succeed)
    const lines: Array<unknown> = []
    const log = (...texts: ReadonlyArray<unknown>) => Effect.sync(() => void lines.push(...texts))
    const serve = () => Effect.dieMessage("must not serve")
    let stderr = ""
    const written = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      stderr += String(text)
      return true
    })
    const program = Effect.withConsole(run(["node", "gateway", ...args], { serve }), { ...own, log })
    const code = yield* Effect.ensuring(
      program,
      Effect.sync(() => written.mockRestore())
    )
    return { code, stdout: lines.join("\n"), stderr }
  })

export const printHelp = (...args: ReadonlyArray<string>) => Effect.map(runAlone(...args), ({ stdout }) => stdout)

export interface CommandHelp {
  readonly name: string
  readonly help: string
  /** `--help` too. */
  readonly options: ReadonlyArray<string>
}

const names = (help: string) => Array.from(help.matchAll(/^ {2}([a-z]+) +[A-Z]/gm), ([, name = ""]) => name)

/** The help of every command, as `print` prints it for `--help`. */
export const commandHelps = Effect.fnUntraced(function* <E, R>(
  print: (...args: ReadonlyArray<string>) => Effect.Effect<string, E, R>
) {
  const found: Array<CommandHelp> = []
  const visit = (path: ReadonlyArray<string>): Effect.Effect<void, E, R> =>
    Effect.gen(function* () {
      const help = yield* print(...path, "--help")
      const [, commands = ""] = help.split(/^COMMANDS$/m)
      const children = names(commands)
      const options = ["--help", ...(help.split("\n\n")[0]?.match(/--[a-z-]+/g) ?? [])]
      found.push({ name: path.join(" "), help, options })
      yield* Effect.forEach(children, (name) => visit([...path, name]), { discard: true })
    })
  yield* Effect.forEach(names(yield* print("--help")), (name) => visit([name]), { discard: true })
  return found
})
